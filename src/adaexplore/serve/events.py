"""The events of a search as messages of a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adaexplore.core.node import Node
from adaexplore.core.protocols.listener import (
    Confirming,
    Evaluating,
    Event,
    Finished,
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
from adaexplore.core.verdict.evaluation_json import evaluation_to_json
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.report.text import one_line, verdict_line
from adaexplore.run.campaign.job import ProgressRow


def message_of(event: Event, problem: str = "") -> dict[str, Any]:
    """Return a message with the type, the text and the data of an event.

    It names no path of the server and has no prompt.
    """
    text, data = _content(event)
    kind = type(event).__name__.lower()
    return {"type": kind, "text": text, "data": data, "problem": problem}


def _content(event: Event) -> tuple[str, dict[str, Any]]:
    match event:
        case Working(text) | Notice(text) | Stopping(text):
            return text, {}
        case Opened() | Finished():
            return "", {}
        case Prepared(facts):
            return "the reference was verified and timed", {
                "baselines_us": dict(facts.baselines_us),
                "labels": dict(facts.labels),
                "notes": list(facts.notes),
            }
        case StepBegun(step, step_kind):
            return f"step {step}: proposing ({step_kind})", {"step": step, "step_kind": step_kind}
        case Waiting(reason, wait_s):
            return f"{reason}; again in {wait_s:.0f} s", {"wait_s": wait_s}
        case Evaluating(step, proposal):
            return f"step {step}: evaluating {proposal.note}", {"step": step}
        case Remeasuring(step, proposal):
            return f"step {step}: measuring {proposal.note} once more", {"step": step}
        case Recorded(node, best):
            said = f"step {node.id}: {one_line(node.proposal.note, 48)}: "
            return said + verdict_line(node.evaluation), _recorded(node, best)
        case Confirming(node):
            return f"measuring step {node.id} again", {"step": node.id}


def _recorded(node: Node, best: bool) -> dict[str, Any]:
    return {
        "step": node.id,
        "parent": node.parent_id,
        "step_kind": node.step_kind,
        "note": node.proposal.note,
        "best": best,
        "evaluation": evaluation_to_json(node.evaluation),
    }


class EventRow(ProgressRow):
    """The progress row of a campaign's problem: `say` takes its messages."""

    def __init__(self, name: str, say: Callable[[Mapping[str, Any]], None]) -> None:
        self._name = name
        self._say = say

    def __call__(self, event: Event) -> None:
        """See `Listener`."""
        self._say(message_of(event, self._name))

    def known(self, nodes: Sequence[Node], facts: ReferenceFacts) -> None:
        """See `ProgressRow`."""

    def lost(self, why: str) -> None:
        """See `ProgressRow`."""
        self._say({"type": "lost", "text": why, "problem": self._name})
