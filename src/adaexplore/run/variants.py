"""The asks for variants of a search's best kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adaexplore.core.ask import AskRecord
from adaexplore.core.node import Node
from adaexplore.run.asks.ledger import Ledger
from adaexplore.store import Store


def variant_asks(ledger: Ledger, store: Store, base: Node, count: int) -> Iterator[AskRecord]:
    """Yield the asks for variants that a kill left open, then new ones."""
    under_way = store.asks("open", "queued")
    left = (record for record in under_way if record.ask.step_kind == "tune")
    made = sum(n.parent_id == base.id and n.step_kind == "tune" for n in ledger.nodes)
    while made < count and not _tried_all(ledger.nodes, base):
        record = next(left, None)
        if record is None:
            ask = ledger.choose_variant(base)
            ledger.begin(ask)
            record = AskRecord(ask, "open")
        made += 1
        yield record


def _tried_all(nodes: Sequence[Node], base: Node) -> bool:
    """Return True once the tuner knows no other variant."""
    return any(
        node.proposal.failure and node.step_kind == "tune" and node.parent_id == base.id
        for node in nodes
    )
