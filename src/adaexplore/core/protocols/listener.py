"""The events of a search, in the order they happen, and callbacks for them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from adaexplore.core.node import Node, StepKind
from adaexplore.core.proposal import Proposal
from adaexplore.core.verdict.facts import ReferenceFacts

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Working:
    """A preparation that takes seconds begins, such as the start of the worker processes."""

    activity: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A line that the user must know, such as a wall of the sandbox that is missing here."""

    text: str


@dataclass(frozen=True, slots=True)
class Opened:
    """The run exists on disk at `path`; it can be resumed from now on."""

    path: Path


@dataclass(frozen=True, slots=True)
class Prepared:
    """The reference was verified and timed; `facts` are the results."""

    facts: ReferenceFacts


@dataclass(frozen=True, slots=True)
class StepBegun:
    """A step begins, with its proposal.

    `step` is the number that the step gets if the steps begun before it are recorded first.
    """

    step: int
    step_kind: StepKind


@dataclass(frozen=True, slots=True)
class Waiting:
    """A model is out of reach or the machine busy; the next attempt follows in `wait_s` seconds."""

    reason: str
    wait_s: float


@dataclass(frozen=True, slots=True)
class Evaluating:
    """The candidate of a step goes to the evaluator."""

    step: int
    proposal: Proposal


@dataclass(frozen=True, slots=True)
class Remeasuring:
    """The candidate of a step would take the lead and is evaluated a second time."""

    step: int
    proposal: Proposal


@dataclass(frozen=True, slots=True)
class Recorded:
    """A step is in the store; `best` says that no step before it was better."""

    node: Node
    best: bool


@dataclass(frozen=True, slots=True)
class Stopping:
    """No further step begins; `reason` names the budget that is spent or the lack of gain."""

    reason: str


@dataclass(frozen=True, slots=True)
class Confirming:
    """One of the best steps is measured again in a fresh process."""

    node: Node


@dataclass(frozen=True, slots=True)
class Finished:
    """The search ended; its report is written. The last event."""

    path: Path


Event = (
    Working
    | Notice
    | Opened
    | Prepared
    | StepBegun
    | Waiting
    | Evaluating
    | Remeasuring
    | Recorded
    | Stopping
    | Confirming
    | Finished
)


class Listener:
    """Callbacks of a search. Every method is a no-op; override what you need.

    A listener is called with every event, in one thread, and calls the method of the event. Every
    step is begun, evaluated and recorded in this order; steps under way at the same time are
    recorded, and get their ids, in the order they end.
    """

    def __call__(self, event: Event) -> None:
        """Call the method of the event."""
        match event:
            case Working(activity):
                self.working(activity)
            case Notice(text):
                self.notice(text)
            case Opened(path):
                self.opened(path)
            case Prepared(facts):
                self.prepared(facts)
            case StepBegun(step, step_kind):
                self.step_begun(step, step_kind)
            case Waiting(reason, wait_s):
                self.waiting(reason, wait_s)
            case Evaluating(step, proposal):
                self.evaluating(step, proposal)
            case Remeasuring(step, proposal):
                self.remeasuring(step, proposal)
            case Recorded(node, best):
                self.recorded(node, best=best)
            case Stopping(reason):
                self.stopping(reason)
            case Confirming(node):
                self.confirming(node)
            case Finished(path):
                self.finished(path)

    def working(self, activity: str) -> None:
        """See `Working`."""

    def notice(self, text: str) -> None:
        """See `Notice`."""

    def opened(self, path: Path) -> None:
        """See `Opened`."""

    def prepared(self, facts: ReferenceFacts) -> None:
        """See `Prepared`."""

    def step_begun(self, step: int, step_kind: StepKind) -> None:
        """See `StepBegun`."""

    def waiting(self, reason: str, wait_s: float) -> None:
        """See `Waiting`."""

    def evaluating(self, step: int, proposal: Proposal) -> None:
        """See `Evaluating`."""

    def remeasuring(self, step: int, proposal: Proposal) -> None:
        """See `Remeasuring`."""

    def recorded(self, node: Node, *, best: bool) -> None:
        """See `Recorded`."""

    def stopping(self, reason: str) -> None:
        """See `Stopping`."""

    def confirming(self, node: Node) -> None:
        """See `Confirming`."""

    def finished(self, path: Path) -> None:
        """See `Finished`."""


def follow(
    events: Generator[Event, None, Result], listener: Callable[[Event], None] | None = None
) -> Result:
    """Pass every event to the listener and return the result of the generator."""
    with closing(events):  # an exception of the listener ends the search at once
        while True:
            try:
                event = next(events)
            except StopIteration as end:
                result: Result = end.value
                return result
            if listener:
                listener(event)
