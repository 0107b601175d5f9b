"""The command for benchmarks, and kernels handed over to their own tools."""
