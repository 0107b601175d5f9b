"""Declarations of the commands; the modules beside this package carry them out."""
