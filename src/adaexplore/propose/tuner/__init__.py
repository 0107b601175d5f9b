"""Tuning: an optimizer, instead of a model, varies the numbers in a kernel's source."""
