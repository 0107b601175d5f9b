"""Memories in other forms: export, comparison, and import of untested statements."""
