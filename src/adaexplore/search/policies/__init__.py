"""Registry of the policies, by the names of `Config.policy`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from adaexplore.core.protocols.policy import Policy
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.policies import PolicyName
from adaexplore.search.policies.archive import Archive
from adaexplore.search.policies.beam import Beam
from adaexplore.search.policies.irb import BestKernels
from adaexplore.search.policies.irl import RecentKernels
from adaexplore.search.policies.irle import RecentAndElite
from adaexplore.search.policies.irs import SmallSteps
from adaexplore.search.policies.islands import Islands
from adaexplore.search.policies.one_kind import OneKind
from adaexplore.search.policies.polca import EpsilonNet
from adaexplore.search.policies.ps import ParallelSampling
from adaexplore.search.policies.stepwise import Stepwise
from adaexplore.search.policies.uct import Uct
from adaexplore.search.policies.widening import Widening

POLICIES: Mapping[PolicyName, Callable[..., Policy]] = {
    "uct": Uct,
    "widening": Widening,
    "ps": ParallelSampling,
    "irs": SmallSteps,
    "irl": RecentKernels,
    "irb": BestKernels,
    "irle": RecentAndElite,
    "beam": Beam,
    "islands": Islands,
    "polca": EpsilonNet,
    "archive": Archive,
    "stepwise": Stepwise,
}
"""Each is called with the settings; every other parameter has a default."""


def make_policy(settings: Config) -> Policy:
    """Return the policy that the settings name, with its parameters and nothing recorded yet."""
    policy = POLICIES[settings.chosen_policy](settings, **settings.policy_parameters)
    return policy if settings.step_kinds == "both" else OneKind(policy, settings.step_kinds)


__all__ = ["POLICIES", "make_policy"]
