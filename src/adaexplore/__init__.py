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
from typing import TYPE_CHECKING

from adaexplore.core.lazy import lazy_names
from adaexplore.core.version import __version__ as __version__

# The package `adaexplore.evaluate`, once it is loaded, would hide the function of the same name.
# Loaded here, it binds its name now and never again, and `__getattr__` finds the function.
import_module("adaexplore.evaluate")
del globals()["evaluate"]

if TYPE_CHECKING:
    from adaexplore.core.candidate import Candidate as Candidate
    from adaexplore.core.errors import AdaExploreError as AdaExploreError
    from adaexplore.core.errors import BadInputError as BadInputError
    from adaexplore.core.errors import BadProblemError as BadProblemError
    from adaexplore.core.errors import InfrastructureError as InfrastructureError
    from adaexplore.core.node import Node as Node
    from adaexplore.core.problem import Problem as Problem
    from adaexplore.core.proposal import Proposal as Proposal
    from adaexplore.core.protocols.client import Message as Message
    from adaexplore.core.protocols.client import ModelClient as ModelClient
    from adaexplore.core.protocols.client import Prompt as Prompt
    from adaexplore.core.protocols.client import Reply as Reply
    from adaexplore.core.protocols.evaluator import Evaluator as Evaluator
    from adaexplore.core.protocols.listener import Confirming as Confirming
    from adaexplore.core.protocols.listener import Evaluating as Evaluating
    from adaexplore.core.protocols.listener import Event as Event
    from adaexplore.core.protocols.listener import Finished as Finished
    from adaexplore.core.protocols.listener import Listener as Listener
    from adaexplore.core.protocols.listener import Notice as Notice
    from adaexplore.core.protocols.listener import Opened as Opened
    from adaexplore.core.protocols.listener import Prepared as Prepared
    from adaexplore.core.protocols.listener import Recorded as Recorded
    from adaexplore.core.protocols.listener import Remeasuring as Remeasuring
    from adaexplore.core.protocols.listener import StepBegun as StepBegun
    from adaexplore.core.protocols.listener import Stopping as Stopping
    from adaexplore.core.protocols.listener import Waiting as Waiting
    from adaexplore.core.protocols.listener import Working as Working
    from adaexplore.core.protocols.policy import Policy as Policy
    from adaexplore.core.protocols.policy import Selection as Selection
    from adaexplore.core.protocols.proposer import Context as Context
    from adaexplore.core.protocols.proposer import Proposer as Proposer
    from adaexplore.core.settings.config import Config as Config
    from adaexplore.core.verdict.evaluation import Cost as Cost
    from adaexplore.core.verdict.evaluation import Estimate as Estimate
    from adaexplore.core.verdict.evaluation import Evaluation as Evaluation
    from adaexplore.core.verdict.evaluation import Failed as Failed
    from adaexplore.core.verdict.evaluation import Passed as Passed
    from adaexplore.core.verdict.evaluation import Timing as Timing
    from adaexplore.run.api import evaluate as evaluate
    from adaexplore.run.api import explore as explore
    from adaexplore.run.api import load_problem as load_problem
    from adaexplore.run.api import optimize as optimize
    from adaexplore.run.handle import Run as Run
    from adaexplore.run.model.optimize import OptimizedModel as OptimizedModel
    from adaexplore.run.model.optimize import optimize_model as optimize_model
else:
    __all__, __getattr__ = lazy_names(__name__, __file__)
    __all__ += ["__version__"]

    def __dir__() -> list[str]:
        return __all__
