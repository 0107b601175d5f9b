"""Text for people: numbers with units, feedback on an evaluation, similarity of sources."""
