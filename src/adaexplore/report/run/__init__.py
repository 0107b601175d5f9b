"""The report on one run: its summary, and the terminal and HTML renderers of it."""
