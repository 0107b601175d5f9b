"""Recorded runs as data that trainers read."""
