"""Helpers that a candidate carries in its own source, as text.

Each function stands alone: it refers to nothing in this module, so that its source can be copied.
"""

import torch


def _conform(
    name: str,
    tensor: torch.Tensor,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    dtype: torch.dtype,
) -> torch.Tensor:
    """Return the argument in the memory layout that the kernels need; raise on another shape."""
    if tensor.shape != shape or tensor.dtype != dtype:
        raise ValueError(
            f"{name} is {tuple(tensor.shape)} of {tensor.dtype}; "
            f"this module is specialised to {shape} of {dtype}"
        )
    laid_out = torch.empty_strided(shape, stride, dtype=dtype, device=tensor.device)
    return laid_out.copy_(tensor)


def _versions(weights: tuple[torch.Tensor, ...]) -> list[int]:
    """Return a value that changes when a weight is replaced or written to."""
    return [w.data_ptr() for w in weights] + [w._version for w in weights]


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
