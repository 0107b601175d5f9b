"""Whole models: calls, profile, groups of modules that are alike, and their ranking."""
