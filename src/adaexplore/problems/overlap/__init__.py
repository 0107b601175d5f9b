"""Overlap of problems with benchmarks, whose problems nobody may train on."""
