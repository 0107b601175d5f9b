"""Rules that are true: each with a program that fails as it says, and one that does not."""
