"""A kernel in the place of modules: the files that are copied into every package of one.

They import one another, the standard library and torch, and nothing else; `adaexplore.package`
replaces their name by the package's. All but `interface`, `cuts`, `spec` and `compare` read the
package that they are in, so they run there and not here.
"""
