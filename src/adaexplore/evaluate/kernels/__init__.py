"""Kernels: captured, compiled ahead of time, profiled and described."""
