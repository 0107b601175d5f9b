"""Judging folders of answers to a benchmark."""
