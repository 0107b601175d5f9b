"""The files that a shipped package is made of, which run there and not here.

They import one another, `problems.interface`, the standard library and torch, and nothing else;
`write` replaces the names of both by the package's. Only `spec` and `compare` are imported here.
"""
