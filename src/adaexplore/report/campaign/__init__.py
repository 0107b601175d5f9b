"""The report on a campaign: its summary, and the terminal and HTML renderers of it."""
