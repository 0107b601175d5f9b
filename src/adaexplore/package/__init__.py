"""A verified candidate as a Python package around the runtime: its files, and its import here."""
