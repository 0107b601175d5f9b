"""CUDA C++, built by PyTorch's `load_inline`."""

from __future__ import annotations

import ast
import re

from adaexplore.languages.base import Dialect

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_ATTRIBUTE = re.compile(
    r"\b__(?:launch_bounds|cluster_dims|block_size|maxnreg|attribute)__"
    r"\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
)
_KERNEL = re.compile(
    r"(?:__global__[\w\s]{0,200}?\bvoid|\bvoid\s+__global__)\s+"
    r"(\w+)\s*(?:<[^;{}()]{0,500}>\s*)?\("
)


def _own_kernels(tree: ast.Module) -> set[str]:
    """Return the `__global__` functions in a module's strings."""
    return {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for name in _KERNEL.findall(_ATTRIBUTE.sub("", _COMMENT.sub(" ", node.value)))
    }


DIALECT = Dialect(
    name="cuda",
    title="CUDA C++",
    kernels="CUDA C++ kernels, built with torch.utils.cpp_extension.load_inline",
    on_gpu=True,
    own_kernels=_own_kernels,
    preload=("adaexplore.languages.cuda.toolkit:use_toolkit",),
    lacking="adaexplore.languages.cuda.toolkit:lacking",
    trial="adaexplore.languages.cuda.toolkit:try_building",
    built_ahead=True,
    strategies={
        "software pipelining": "`cp.async` or TMA with a ring of buffers.",
        "vectorized access": "`float4`, several per thread.",
        "tuned configurations": "Template parameters.",
    },
    since={"warp specialisation": 9},
)
