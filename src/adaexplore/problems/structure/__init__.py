"""Structures of problems: operations and how they hang together, whatever their sizes."""
