"""Tuning: the numbers in a kernel's source, varied by an optimizer instead of a model."""
