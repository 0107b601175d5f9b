"""Compilers of kernels: their set-up, their warm-up, and compilation ahead of time."""
