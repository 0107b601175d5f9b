"""Whole models: the ranking of their modules, and what replacements brought."""
