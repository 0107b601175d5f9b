"""The progress of a campaign on the terminal: a row for every problem."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from rich.console import Console
from rich.live import Live
from rich.table import Table

from adaexplore.core.node import Node, StepKind
from adaexplore.core.proposal import Proposal
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.report.text import claim, duration_us, one_line, share, verdict_line
from adaexplore.run.campaign.job import ProgressRow
from adaexplore.search.headroom import best_measured, roofline_share

_WAITING, _READY = "waiting", "has had its turn"


class CampaignRow(ProgressRow):
    """The row of one problem; one thread at a time calls it."""

    def __init__(self, name: str, view: CampaignView) -> None:
        self.name = name
        self.status = _WAITING
        self._view = view
        self._nodes: list[Node] = []
        self._facts = ReferenceFacts()

    def known(self, nodes: Sequence[Node], facts: ReferenceFacts) -> None:
        """See `ProgressRow`."""
        self._nodes, self._facts = list(nodes), facts

    def preparing(self) -> None:
        """See `ProgressRow`."""
        if self.status == _WAITING:  # the first turn takes long to begin
            self._view.say(f"{self.name}: preparing")
        self.status = "preparing"

    def lost(self, why: str) -> None:
        """See `ProgressRow`."""
        self.status = why
        self._view.say(f"{self.name}: {one_line(why)}")

    def notice(self, text: str) -> None:
        """See `Listener`."""
        self._view.say(f"{self.name}: {text}")

    def prepared(self, facts: ReferenceFacts) -> None:
        """See `Listener`."""
        self._facts = facts

    def step_begun(self, step: int, step_kind: StepKind) -> None:
        """See `Listener`."""
        self.status = f"step {step}: proposing ({step_kind})"
        self._view.say(f"{self.name}: {self.status}")

    def waiting(self, reason: str, wait_s: float) -> None:
        """See `Listener`."""
        self.status = f"{reason}; again in {wait_s:.0f} s"

    def evaluating(self, step: int, proposal: Proposal) -> None:
        """See `Listener`."""
        self.status = f"step {step}: evaluating {one_line(proposal.note, 40)}"

    def recorded(self, node: Node, *, best: bool) -> None:
        """See `Listener`."""
        self._nodes.append(node)
        self.status = _READY
        verdict = verdict_line(node.evaluation)
        self._view.say(f"{self.name}: step {node.id}  {verdict}{'  best' if best else ''}")

    def stopping(self, reason: str) -> None:
        """See `Listener`."""
        self.status = reason

    def confirming(self, node: Node) -> None:
        """See `Listener`."""
        self.status = f"measuring step {node.id} again"

    @property
    def cells(self) -> tuple[str, ...]:
        """Name, steps, best speedup, its time, the share of the roofline, status."""
        best, reached = best_measured(self._nodes), roofline_share(self._nodes, self._facts)
        return (
            self.name,
            str(len(self._nodes)),
            claim(best[1]) if best else "",
            duration_us(best[1].time_us) if best else "",
            share(reached) if reached else "",
            one_line(self.status, 60),
        )


class CampaignView:
    """A live table of all problems; where there is no terminal, a line for each step."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._saying = threading.Lock()
        self._rows: list[CampaignRow] = []
        self._over = False
        self._live = Live(
            console=console,
            get_renderable=self._table,
            refresh_per_second=4,
            transient=True,
            auto_refresh=console.is_terminal,
        )

    def row(self, name: str) -> CampaignRow:
        """Add the row of a problem."""
        row = CampaignRow(name, self)
        self._rows.append(row)
        return row

    def __enter__(self) -> CampaignView:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True  # after Ctrl-C, searches still find out that their processes are gone
        if self._console.is_terminal:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print a line where there is no terminal for the table."""
        if not (self._console.is_terminal or self._over):
            with self._saying:
                self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _table(self) -> Table:
        table = Table(box=None)
        for name in ("problem", "steps", "best", "time", "roofline", "status"):
            right = name not in ("problem", "status")
            table.add_column(name, justify="right" if right else "left", no_wrap=True)
        for row in self._rows:
            table.add_row(*row.cells)
        return table
