"""A recorded search gone through again, with the policies, prompts and parsers of today.

Nobody is asked and nothing is measured: recorded replies and evaluations stand in. Every ask is
chosen anew when as many steps are recorded as it had seen and with those under way that were so
then; whatever comes of it, the search goes on as it was recorded, so that one difference hides no
other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from adaexplore.core import (
    START,
    Ask,
    BadInputError,
    Exchange,
    Prompt,
    Proposal,
    Proposer,
    first_difference,
)
from adaexplore.evaluate import RecordedEvaluator, UnseenCandidateError
from adaexplore.run import Ledger
from adaexplore.store import Store, memory_store

Part = Literal["selection", "prompt", "candidate"]
"""Where the tree grew and what the step was shown; what was asked; what the replies led to."""

_CHOSEN = ("parent_id", "step_kind", "seed", "pool", "window")


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """One difference between an ask of today and the recorded one, in one line."""

    part: Part
    ask_id: int
    what: str


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """Counts of the selections, prompts and candidates compared, and the differences in order.

    Of an ask's prompts only the first that differs counts: the others go on from it.
    """

    compared: Mapping[Part, int]
    differences: tuple[ReplayDifference, ...]


def retrace(store: Store, proposers: Mapping[str, Proposer]) -> ReplayResult:
    """Go through the run in `store`.

    What a proposer that is not among `proposers` made is taken as it is. Raises `BadInputError` for
    a run that kept no asks.
    """
    return _Replaying(store, proposers).go_through()


class _Replaying:
    def __init__(self, store: Store, proposers: Mapping[str, Proposer]) -> None:
        run = store.run()
        self._asks = store.asks()
        self._nodes = store.nodes()
        asks = {record.ask.id: record.ask for record in self._asks}
        self._ask_of = {n.id: asks[n.ask_id] for n in self._nodes if n.ask_id in asks}
        if len(self._ask_of) < len(self._nodes):
            raise BadInputError("this run has steps without an ask: only a search can be replayed")
        self._outcomes = {self._ask_of[node.id].id: node.proposal for node in self._nodes}
        self._calls: dict[int, list[Exchange]] = defaultdict(list)
        for call in store.calls():
            self._calls[call.ask_id].append(call)
        self._proposers = proposers
        self._evaluator = RecordedEvaluator(self._nodes, run.reference)
        self._now = 0.0
        self._store = store
        self._again = memory_store(run)
        self._ledger = Ledger(self._again, proposers, now=lambda: self._now)
        self._compared: Counter[Part] = Counter()
        self._differences: list[ReplayDifference] = []

    def go_through(self) -> ReplayResult:
        for _, batch in groupby(self._asks, key=lambda record: record.ask.batch or -record.ask.id):
            records = list(batch)
            for record in records:
                self._open(record.ask)
            for record in records:
                ask = record.ask
                outcome = record.proposal or self._outcomes.get(ask.id)
                if ask.proposer in self._proposers and self._ledger.batches.waits_for(ask) is None:
                    self._compare_talk(ask, outcome)
                if outcome:
                    self._ledger.queue(ask, outcome)
        return ReplayResult(dict(self._compared), tuple(self._differences))

    def _open(self, ask: Ask) -> None:
        """Choose an ask anew and open the recorded one, with its replies."""
        self._now = ask.opened_at
        self._record_steps(ask.seen)
        if ask.proposer == START:
            chosen = ask  # the run was told where it stands
        elif ask.step_kind == "tune":
            chosen = self._ledger.choose_variant(self._nodes[ask.parent_id - 1])
        else:
            chosen = self._ledger.choose(ask.proposer)
        self._note("selection", ask, _selection_change(ask, chosen))
        self._again.set_reference(self._store.reference_for(ask.id))
        self._ledger.begin(ask)
        for call in self._calls[ask.id]:
            self._ledger.keep(ask.id, call.prompt, call.reply)

    def _record_steps(self, count: int) -> None:
        """Record the missing steps until there are `count`."""
        for node in self._nodes[len(self._ledger.nodes) : count]:
            self._ledger.record(
                self._ask_of[node.id],
                node.proposal,
                node.evaluation,
                propose_s=node.propose_s,
                reused=node.reused,
                repeats=node.repeats,
            )

    def _compare_talk(self, ask: Ask, outcome: Proposal | None) -> None:
        prompts, proposal = self._ledger.replay(ask)
        if self._calls[ask.id]:
            self._note("prompt", ask, _prompt_change(self._calls[ask.id], prompts))
        if outcome:
            self._note("candidate", ask, self._candidate_change(outcome, proposal))

    def _candidate_change(self, outcome: Proposal, proposal: Proposal | None) -> str:
        if proposal is None:
            return "its replies no longer suffice"
        if bool(proposal.failure) != bool(outcome.failure):
            return proposal.failure or f"is a candidate now; it was none: {outcome.failure}"
        if proposal.candidate == outcome.candidate:
            return ""
        try:
            self._evaluator.evaluate(proposal.candidate)
        except UnseenCandidateError as error:
            return str(error)
        return "is another step's candidate now"

    def _note(self, part: Part, ask: Ask, change: str) -> None:
        self._compared[part] += 1
        if change:
            self._differences.append(ReplayDifference(part, ask.id, change))


def _selection_change(recorded: Ask, chosen: Ask) -> str:
    pairs = {name: (getattr(recorded, name), getattr(chosen, name)) for name in _CHOSEN}
    return "; ".join(
        f"{name.removesuffix('_id')} was {old}, is {new}"
        for name, (old, new) in pairs.items()
        if old != new
    )


def _prompt_change(calls: Sequence[Exchange], prompts: Sequence[Prompt]) -> str:
    for turn, (call, prompt) in enumerate(zip(calls, prompts, strict=False), 1):
        if call.prompt.messages != prompt.messages:
            difference = first_difference(_text(call.prompt), _text(prompt), "now")
            return f"turn {turn} ({call.prompt.label}): {difference}"
    if len(prompts) < len(calls):
        return f"{len(calls)} prompts were answered, {len(prompts)} are asked now"
    return ""


def _text(prompt: Prompt) -> str:
    return "\n".join(f"[{message.role}]\n{message.text}" for message in prompt.messages)
