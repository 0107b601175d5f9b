"""A rule: what fails, the smallest program that fails so, and the same thing done right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from adaexplore.core.evaluation import FailureStatus

Kind = Literal["compile", "launch", "resource", "numerics", "silent", "speed"]
"""Language and API; grid and meta-parameters; shared memory and registers; precision and overflow;
what compiles and gives a wrong answer; what is right and slow."""

KINDS: tuple[Kind, ...] = get_args(Kind)

WitnessStatus = Literal[FailureStatus, "slow"]
"""What is wrong with a witness; a slow one is right."""

Source = Literal["probe", "failure", "import"]

Scope = Literal["kernel", "host"]
"""The bodies of jitted functions; all that is around them."""


@dataclass(frozen=True, slots=True)
class Signature:
    """How a program fails, so that two failures of one cause compare equal.

    `type` is the exception's ("" for a wrong output, or a process that ended), `symbol` the API or
    construct that it names, `message` its text without names, numbers and places.
    """

    status: WitnessStatus
    type: str = ""
    symbol: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Platform:
    """A version of Triton, such as "3.6.0", and a target, such as "sm_90".

    `gpu` is the name that its driver gives a GPU: speed is a matter of that one, and empty in
    rules of any other kind, and where there is none.
    """

    triton: str
    target: str
    gpu: str = ""

    def as_of(self, kind: Kind) -> Platform:
        """The place as rules of a kind name it."""
        return self if kind == "speed" else Platform(self.triton, self.target)

    def __str__(self) -> str:
        return " ".join(filter(None, [self.triton, self.target, self.gpu]))


@dataclass(frozen=True, slots=True)
class Gain:
    """How many times as fast as a witness its remedy was in a place, with the 95 % interval."""

    where: Platform
    speedup: float
    speedup_ci: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Matcher:
    """What a rule forbids, as far as a module's syntax alone tells it for certain.

    `code` holds Python expressions or statements, of which any may be found: `_` in them is any
    expression, `_A` and the like one of which `where` says more ("a float", "< 16", "not a power of
    two"), `...` at the end of arguments or elements any further ones. `construct` names instead
    what has no such pattern ("break", "try", ...). `scope` says where to look: in kernels, or
    around them.
    """

    code: tuple[str, ...] = ()
    construct: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    scope: Scope = "kernel"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a memory; `name` is its own there.

    `statement` says in a line or two what to do, and what fails otherwise. `reference` is a problem
    in KernelBench form; `witness` claims to be a faster module for it and fails as `signature`
    says; `remedy` is the same done right, and passes. `holds` lists where both were seen, `gone`
    where the witness fails no longer. Of a speed rule both programs pass: it holds where the remedy
    was measured to be faster (see `memory.check`), is gone where it was not, and `gains` has what
    was measured in each place. `support` counts the failures behind the rule and `tasks`
    names the distinct tasks they came from. `topics` are the APIs, operations and dtypes it is
    about. `lift` is what it adds to first-try validity, None until that was measured, and
    `lift_tries` how many first tries with it that is from. `matcher` finds modules that break the
    rule before they are evaluated, None where syntax does not tell.
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
