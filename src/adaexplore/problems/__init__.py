"""Reads the user's reference file into a `Problem`; nothing here runs it."""
