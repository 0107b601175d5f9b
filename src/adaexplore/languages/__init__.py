"""Languages of kernels, one module each."""

from collections.abc import Mapping

from adaexplore.core.problem import Language
from adaexplore.languages.base import Dialect
from adaexplore.languages.cpp import CPP
from adaexplore.languages.cuda import CUDA
from adaexplore.languages.helion import HELION
from adaexplore.languages.triton import TRITON

DIALECTS: Mapping[Language, Dialect] = {each.name: each for each in (TRITON, CUDA, HELION, CPP)}
"""All languages by name."""

__all__ = ["DIALECTS", "Dialect"]
