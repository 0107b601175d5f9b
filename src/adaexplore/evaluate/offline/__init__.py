"""Triton without a GPU: kernels interpreted on small shapes and compiled at their real ones."""
