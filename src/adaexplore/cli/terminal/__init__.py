"""Progress, tables and errors on the terminal."""
