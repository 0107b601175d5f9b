"""Mutation testing: single defects in the source, and whether the fast tests notice them."""
