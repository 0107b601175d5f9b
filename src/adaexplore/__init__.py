"""AdaExplore: turns a PyTorch module into a faster, verified kernel.

    run = adaexplore.optimize("problem.py", steps=8)
    fast = run.best_source
    verdict = adaexplore.evaluate("problem.py", "candidate.py")
    for event in adaexplore.explore("problem.py", steps=8):
        print(event)

Importing this package loads no torch: the work happens in worker processes. Every name is loaded
when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from adaexplore.core.version import __version__

# The package `adaexplore.evaluate`, once it is loaded, would hide the function of the same name.
# Loaded here, it binds its name now and never again, and `__getattr__` finds the function.
import_module("adaexplore.evaluate")
del globals()["evaluate"]

if TYPE_CHECKING:
    from adaexplore.core.candidate import Candidate
    from adaexplore.core.client import Client, Message, Prompt, Reply
    from adaexplore.core.config import Config
    from adaexplore.core.errors import (
        AdaExploreError,
        BadInputError,
        BadProblemError,
        InfrastructureError,
    )
    from adaexplore.core.evaluation import Cost, Estimate, Evaluation, Failed, Passed, Timing
    from adaexplore.core.evaluator import Evaluator
    from adaexplore.core.listener import (
        Confirming,
        Evaluating,
        Event,
        Finished,
        Listener,
        Notice,
        Opened,
        Prepared,
        Recorded,
        Remeasuring,
        StepBegun,
        Stopping,
        Waiting,
        Working,
    )
    from adaexplore.core.node import Node
    from adaexplore.core.policy import Policy, Selection
    from adaexplore.core.problem import Problem
    from adaexplore.core.proposal import Proposal
    from adaexplore.core.proposer import Context, Proposer
    from adaexplore.run.api import evaluate, explore, load_problem, optimize
    from adaexplore.run.handle import Run

_HOMES = {
    "core.candidate": ("Candidate",),
    "core.client": ("Client", "Message", "Prompt", "Reply"),
    "core.config": ("Config",),
    "core.errors": ("AdaExploreError", "BadInputError", "BadProblemError", "InfrastructureError"),
    "core.evaluation": ("Cost", "Estimate", "Evaluation", "Failed", "Passed", "Timing"),
    "core.evaluator": ("Evaluator",),
    "core.listener": (
        "Confirming",
        "Evaluating",
        "Event",
        "Finished",
        "Listener",
        "Notice",
        "Opened",
        "Prepared",
        "Recorded",
        "Remeasuring",
        "StepBegun",
        "Stopping",
        "Waiting",
        "Working",
    ),
    "core.node": ("Node",),
    "core.policy": ("Policy", "Selection"),
    "core.problem": ("Problem",),
    "core.proposal": ("Proposal",),
    "core.proposer": ("Context", "Proposer"),
    "run.api": ("evaluate", "explore", "load_problem", "optimize"),
    "run.handle": ("Run",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AdaExploreError",
    "BadInputError",
    "BadProblemError",
    "Candidate",
    "Client",
    "Config",
    "Confirming",
    "Context",
    "Cost",
    "Estimate",
    "Evaluating",
    "Evaluation",
    "Evaluator",
    "Event",
    "Failed",
    "Finished",
    "InfrastructureError",
    "Listener",
    "Message",
    "Node",
    "Notice",
    "Opened",
    "Passed",
    "Policy",
    "Prepared",
    "Problem",
    "Prompt",
    "Proposal",
    "Proposer",
    "Recorded",
    "Remeasuring",
    "Reply",
    "Run",
    "Selection",
    "StepBegun",
    "Stopping",
    "Timing",
    "Waiting",
    "Working",
    "__version__",
    "evaluate",
    "explore",
    "load_problem",
    "optimize",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
