"""Memories of other systems, checked against witnessed rules."""
