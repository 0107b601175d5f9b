"""Large steps that are asked for at once: the outlines that they share, and what each writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count

from adaexplore.core.ask import Ask, AskRecord
from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.proposer import Context, NamesOutlines, Outline, Proposer
from adaexplore.core.protocols.store import Store
from adaexplore.propose.model.strategies import find_strategy


class Batches:
    """The batches of a run's asks.

    With `outlined`, the first large step of a batch asks for an outline for each of them.
    `context_of` returns the context of an ask as if it were opened alone.
    """

    def __init__(
        self,
        store: Store,
        proposers: Mapping[str, Proposer],
        context_of: Callable[[Ask], Context],
        *,
        outlined: bool,
    ) -> None:
        self._store = store
        self._proposers = proposers
        self._context_of = context_of
        self._outlined = outlined
        self._known: dict[tuple[int, int], tuple[Outline, ...]] = {}
        """Outlines by the id of the ask that named them and the number of large steps."""

    def context(self, ask: Ask) -> Context:
        """Return the context of an ask: with the number of outlines to name, or with its own.

        Raises `BadInputError` for an ask that waits for another's outlines.
        """
        context, group = self._context_of(ask), self._group(ask)
        if not group:
            return context
        if ask.id == group[0].ask.id:
            return replace(context, outlines=len(group))
        outlines = self._outlines(group)
        if outlines is None:
            raise BadInputError(
                f"ask {ask.id} has no prompt yet: it waits for the structures that ask "
                f"{group[0].ask.id} asks for; answer that first"
            )
        return context.given(outlines, _place(ask, group))

    def waits_for(self, ask: Ask) -> int | None:
        """Return the id of the ask whose outlines an ask waits for, None if it waits for none."""
        group = self._group(ask)
        if not group or ask.id == group[0].ask.id or self._outlines(group) is not None:
            return None
        return group[0].ask.id

    def has_outlines(self, ask: Ask) -> bool:
        """Return True for an ask whose batch shares outlines that are known."""
        group = self._group(ask)
        return bool(group) and self._outlines(group) is not None

    def idea(self, record: AskRecord) -> str:
        """Return what a large step writes: its proposal's note, its outline or its strategy.

        Empty while none is known, and for a proposal without a module.
        """
        if record.proposal is not None:
            return "" if record.proposal.failure else record.proposal.note
        group = self._group(record.ask)
        outlines = (self._outlines(group) if group else None) or ()
        if outlines and (place := _place(record.ask, group)) < len(outlines):
            return outlines[place].name
        calls = self._store.calls(record.ask.id)
        replies = (call.reply.text for call in calls if call.prompt.label == "strategy")
        return next(filter(None, map(find_strategy, replies)), "")

    def _group(self, ask: Ask) -> list[AskRecord]:
        """Return the two or more large steps of a batch that share outlines, in their order.

        The first asks for them. Empty for an ask that shares none, and for one that is not open
        yet.
        """
        if not (ask.batch and ask.step_kind == "large" and self._outlined):
            return []
        group = []
        for ask_id in count(ask.batch):
            record = self._store.find_ask(ask_id)
            if record is None or record.ask.batch != ask.batch:
                break
            if record.ask.step_kind == "large" and isinstance(
                self._proposers.get(record.ask.proposer), NamesOutlines
            ):
                group.append(record)
        shares = len(group) > 1 and any(record.ask.id == ask.id for record in group)
        return group if shares else []

    def _outlines(self, group: Sequence[AskRecord]) -> tuple[Outline, ...] | None:
        """Return the outlines of a group, None while they are asked for."""
        first, number = group[0].ask, len(group)
        if (first.id, number) in self._known:
            return self._known[first.id, number]
        proposer = self._proposers[first.proposer]
        assert isinstance(proposer, NamesOutlines)
        flow = proposer.outline(replace(self._context_of(first), outlines=number))
        try:
            next(flow)
            for call in self._store.calls(first.id):
                flow.send(call.reply)
        except StopIteration as end:
            outlines: tuple[Outline, ...] = end.value
            self._known[first.id, number] = outlines
            return outlines
        return None if group[0].state == "open" else ()


def _place(ask: Ask, group: Sequence[AskRecord]) -> int:
    """Return the place of an ask in its group, from 0."""
    return [record.ask.id for record in group].index(ask.id)
