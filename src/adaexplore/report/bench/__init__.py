"""The report on a judged benchmark: its summary, and the terminal and HTML renderers of it."""
