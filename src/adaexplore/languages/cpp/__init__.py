"""C++ for the CPU, built by PyTorch's `load_inline`."""

from __future__ import annotations

from adaexplore.languages.base import Dialect

DIALECT = Dialect(
    name="cpp",
    title="C++",
    kernels="C++ kernels for the CPU, built with torch.utils.cpp_extension.load_inline",
    on_gpu=False,
    preload=("adaexplore.evaluate.kernels.build.warm:warm_cpp_compiler",),
    by_compiler=True,
    strategies={
        "vectorized access": "Unit-stride inner loops that the compiler vectorises.",
    },
)
