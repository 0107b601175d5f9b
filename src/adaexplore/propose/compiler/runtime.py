"""Helpers that a candidate carries in its own source, as text.

Each function stands alone: it refers to nothing in this module, so that its source can be copied.
"""

import torch


def _laid_out(tensor: torch.Tensor, stride: tuple[int, ...]) -> torch.Tensor:
    """Return a copy of the argument in the memory layout that the kernels need."""
    made = torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype, device=tensor.device)
    return made.copy_(tensor)


def _weights_at(module: torch.nn.Module, forms):  # type: ignore[no-untyped-def]
    """Return the dictionary that each weight lives in, by the weight's name.

    `forms` has the shape, strides, dtype and device that the kernels need, by name. Raises for a
    weight of another form: it was moved or cast, or its layer replaced.
    """
    homes = {}
    for name, form in forms.items():
        owner, _, own = name.rpartition(".")
        try:
            layer = module.get_submodule(owner)
        except AttributeError:
            layer = torch.nn.Module()
        home = layer._parameters if own in layer._parameters else layer._buffers
        weight = home.get(own)
        if weight is None:
            raise ValueError(f"there is no weight {name}, to which this module is specialised")
        found = (tuple(weight.shape), weight.stride(), weight.dtype, str(weight.device))
        if found != form:
            raise ValueError(f"{name} is {found}; this module is specialised to {form}")
        homes[name] = home
    return homes


def _refuse_gradients(module, *arguments):  # type: ignore[no-untyped-def]
    """Raise where a gradient could be asked for: the kernels compute none."""
    leaves = (*torch.utils._pytree.tree_leaves(arguments), *module.parameters())
    if any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in leaves):
        raise RuntimeError("this module computes no gradients: call it under torch.no_grad()")


class _Watched(torch.nn.Parameter):
    """A weight that counts accesses to `.data`, through which it can change unseen."""

    touched = 0

    @property
    def data(self):  # type: ignore[no-untyped-def]
        """The values, as the base class returns them."""
        self.touched += 1
        return torch.Tensor.data.__get__(self)  # type: ignore[attr-defined]

    @data.setter
    def data(self, values):  # type: ignore[no-untyped-def]
        self.touched += 1
        torch.Tensor.data.__set__(self, values)  # type: ignore[attr-defined]


def _watch(weights: tuple[torch.Tensor, ...]) -> None:
    """Make every parameter count accesses to its `.data`."""
    for weight in weights:
        if type(weight) is torch.nn.Parameter:
            weight.__class__ = _Watched


def _versions(weights: tuple[torch.Tensor, ...]) -> list[int]:
    """Return a value that changes when a weight is replaced or written to."""
    touched = [getattr(w, "touched", 0) for w in weights]
    return [w.data_ptr() for w in weights] + [w._version for w in weights] + touched


def _load_cpp(*kernels):  # type: ignore[no-untyped-def]
    """Compile C++ kernels, each (argument types, source), in parallel; cached on disk."""
    from concurrent.futures import ThreadPoolExecutor

    from torch._inductor.codecache import CppPythonBindingsCodeCache

    with ThreadPoolExecutor() as pool:
        pending = [
            CppPythonBindingsCodeCache.load_pybinding_async(*kernel, submit_fn=pool.submit)
            for kernel in kernels
        ]
        return [kernel() for kernel in pending]


def _launcher(kernel, grid, blocks, **options):  # type: ignore[no-untyped-def]
    """Return a function that launches a Triton kernel on a stream; its first call compiles.

    `grid` is a function of the block sizes `blocks`, which end the kernel's parameters. Later calls
    skip Triton's binding of arguments, because their types and alignments do not change.
    """
    size = grid(**blocks)
    constants = tuple(blocks.values())
    bound: list = []  # type: ignore[type-arg]

    def launch(stream, *arguments):  # type: ignore[no-untyped-def]
        if bound:
            run, function, metadata = bound
            run(*size, stream, function, metadata, None, None, None, *arguments, *constants)
        else:
            compiled = kernel[size](*arguments, **blocks, **options)
            bound.extend((compiled.run, compiled.function, compiled.packed_metadata))

    return launch
