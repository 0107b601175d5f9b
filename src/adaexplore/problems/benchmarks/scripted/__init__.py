"""Benchmarks of PyTorch functions, each with a script that draws its inputs and times it."""
