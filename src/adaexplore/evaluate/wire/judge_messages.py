"""Messages between an evaluator and its judge; both are trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adaexplore.core.problem import Language
from adaexplore.core.verdict.uses import Use
from adaexplore.evaluate.wire.messages import Request


@dataclass(frozen=True)
class ReferencePrepared:
    """The reference is ready; `facts` is `ReferenceFacts.to_json`."""

    facts: dict[str, Any]


@dataclass(frozen=True)
class Evaluated:
    """A verdict; `evaluation` is as `evaluation_to_json` returns it."""

    evaluation: dict[str, Any]


@dataclass(frozen=True)
class BadProblem:
    """The reference cannot be verified against, in place of a reply."""

    bad_problem: str


@dataclass(frozen=True)
class Broken:
    """Infrastructure trouble in the judge, in place of a reply; `log` is the traceback."""

    broken: str
    log: str = ""


@dataclass(frozen=True)
class Prepare(Request[ReferencePrepared]):
    """Run the reference of a problem (`Problem.to_json`).

    `memory_bytes` bounds a candidate's private memory on the CPU, `timeout_s` one call of the
    reference. A `brief` judge has eager as its only baseline and measures roughly. `beside` judges
    of the same problem are there already. With `own_only`, no inputs but the problem's own are
    tried, apart from variations of them.
    """

    problem: dict[str, Any]
    memory_bytes: int
    brief: bool
    timeout_s: float
    beside: int = 0
    own_only: bool = False


@dataclass(frozen=True)
class Evaluate(Request[Evaluated]):
    """Judge a candidate in `timeout_s` seconds, beside its `parent` if the source is given."""

    source: str
    language: Language
    timeout_s: float
    parent: str | None
    again: bool


@dataclass(frozen=True)
class UsesTried:
    """The outcome of every use that was tried."""

    uses: tuple[Use, ...]


@dataclass(frozen=True)
class TryUses(Request[UsesTried]):
    """Try a correct candidate as users use a module, in `timeout_s` seconds."""

    source: str
    language: Language
    timeout_s: float
