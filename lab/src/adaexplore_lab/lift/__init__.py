"""The worth of a memory, measured by first tries with and without it."""
