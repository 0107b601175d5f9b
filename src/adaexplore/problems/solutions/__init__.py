"""Kernels handed to benchmarks, in the forms in which their own tools load, build and run them."""
