"""Rules that nobody has checked: sentences, statements, and their wording."""
