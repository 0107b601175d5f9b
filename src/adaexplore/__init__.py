"""AdaExplore: turns a PyTorch module into a faster, verified kernel.

Importing this package loads no torch; everything heavy happens in worker processes.
"""

from __future__ import annotations

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import (
    AdaExploreError,
    BadInputError,
    BadProblemError,
    InfrastructureError,
)
from adaexplore.core.evaluation import Cost, Estimate, Evaluation, Failed, Passed, Timing
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.version import __version__

__all__ = [
    "AdaExploreError",
    "BadInputError",
    "BadProblemError",
    "Candidate",
    "Cost",
    "Estimate",
    "Evaluation",
    "Failed",
    "InfrastructureError",
    "Node",
    "Passed",
    "Problem",
    "Proposal",
    "Timing",
    "__version__",
]
