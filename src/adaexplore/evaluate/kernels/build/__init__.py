"""Compilers of kernels: set up, warmed and run ahead of time."""
