"""Walls around a worker: Landlock, seccomp, namespaces, resource limits and readable paths."""
