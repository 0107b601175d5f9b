"""Problem -> Candidate: proposers and the context they are given."""
