"""Recorded runs as data to train models on."""
