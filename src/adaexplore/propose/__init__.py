"""Proposers: from a problem and its context to a candidate."""
