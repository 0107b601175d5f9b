"""The page of a study: its summary, computed once, and the terminal and HTML renderers of it."""
