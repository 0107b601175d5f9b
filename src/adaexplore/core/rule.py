"""Rule: a mistake, the smallest program that makes it, and the corrected program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from adaexplore.core.problem import Language
from adaexplore.core.verdict.evaluation import FailureStatus

CheckedKind = Literal["compile", "launch", "resource", "numerics", "silent", "speed"]
"""Language and API; grid and meta-parameters; shared memory and registers; precision and overflow;
code that compiles and gives a wrong answer; code that is correct and slow."""

Kind = Literal[CheckedKind, "unchecked"]
"""The kind of a rule with programs; `unchecked` for a sentence that nobody tested."""

KINDS: tuple[CheckedKind, ...] = get_args(CheckedKind)

WitnessStatus = Literal[FailureStatus, "slow", "unchecked"]
"""Fault of a witness; a slow witness is correct, and an unchecked rule has none."""

Source = Literal["probe", "failure", "import"]

Scope = Literal["kernel", "host"]
"""The bodies of jitted functions; the code around them."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Signature of a failure, such that two failures of one cause compare equal.

    `type` is the type of the exception ("" for a wrong output or a process that ended), `symbol`
    the API or construct that it names, `message` its text without names, numbers and positions.
    """

    status: WitnessStatus
    type: str = ""
    symbol: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Platform:
    """Version of Triton, such as "3.6.0", and target, such as "sm_90".

    `gpu` is the driver's name of the GPU. Only speed rules depend on it; it is empty in rules of
    any other kind, and without a GPU.
    """

    triton: str
    target: str
    gpu: str = ""

    def as_of(self, kind: Kind) -> Platform:
        """Return the platform as rules of a kind name it."""
        return self if kind == "speed" else Platform(self.triton, self.target)

    def __str__(self) -> str:
        return " ".join(filter(None, [self.triton, self.target, self.gpu]))


@dataclass(frozen=True, slots=True)
class Gain:
    """Speedup of a remedy over its witness on one platform, with the 95 % interval."""

    where: Platform
    speedup: float
    speedup_ci: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Matcher:
    """Pattern of the code that a rule forbids, as far as syntax alone tells it for certain.

    `code` holds Python expressions or statements, any of which matches. In them `_` stands for any
    expression, `_A` and the like for an expression that `where` restricts ("a float", "< 16", "not
    a power of two"), and `...` at the end of arguments or elements for any further ones.
    `construct` names a construct that has no such pattern ("break", "try", ...). `scope` says where
    to look: in kernels, or around them.
    """

    code: tuple[str, ...] = ()
    construct: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    scope: Scope = "kernel"


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule of a memory; `name` is unique there.

    `statement` says in a line or two what to do, and what fails otherwise. `reference` is a problem
    in KernelBench form. `witness` is a module that claims to be a faster version of it and fails as
    `signature` says; `remedy` is the corrected module, which passes. `holds` lists the platforms
    where both were observed, `gone` those where the witness no longer fails.

    Both programs of a speed rule pass: the rule holds where the remedy was measured to be faster
    (see `memory.check`), is gone where it was not, and `gains` has the measurement of each
    platform.

    `support` counts the failures behind the rule and `tasks` names the distinct tasks they came
    from. `topics` are the APIs, operations and dtypes that the rule is about. `lift` is the
    increase of first-try validity by the rule, None until it is measured, and `lift_tries` the
    number of first tries with the rule behind it. `matcher` finds modules that break the rule
    before they are evaluated, None if syntax does not tell.

    Its programs are in `language`, one that Triton compiles, and it is told to no other.

    A rule of kind `unchecked` is a sentence with a count: it has no reference and no programs, and
    holds nowhere.
    """

    name: str
    kind: Kind
    statement: str
    reference: str
    witness: str
    remedy: str
    signature: Signature
    holds: tuple[Platform, ...] = ()
    gone: tuple[Platform, ...] = ()
    support: int = 1
    tasks: tuple[str, ...] = ()
    source: Source = "probe"
    topics: tuple[str, ...] = ()
    lift: float | None = None
    lift_tries: int = 0
    matcher: Matcher | None = None
    gains: tuple[Gain, ...] = ()
    language: Language = "triton"

    @property
    def is_checked(self) -> bool:
        """True for a rule with programs, which were run."""
        return self.kind != "unchecked"


def unchecked_rule(
    name: str, statement: str, *, support: int, source: Source, tasks: tuple[str, ...] = ()
) -> Rule:
    """Return a rule without programs: a statement that was seen `support` times."""
    return Rule(
        name=name,
        kind="unchecked",
        statement=statement,
        reference="",
        witness="",
        remedy="",
        signature=Signature("unchecked"),
        support=support,
        tasks=tasks,
        source=source,
    )
