"""Going through a run's recorded replies again, with the prompts and parsers of today."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from adaexplore.ask import Ask
from adaexplore.cli.proposers import Plan, model_proposers
from adaexplore.node import Node
from adaexplore.report.conversations import conversations
from adaexplore.store import read_run
from adaexplore.study import Study


def retrace(path: Path) -> int:
    """Prints which asks no longer lead to the candidate recorded; the exit code: 1 if one does not.

    Prompts are not compared: they hold measured times, which every session takes anew.
    """
    console = Console()
    with read_run(path) as directory:
        store = directory.store
        run = store.run()
        study = Study(store, model_proposers(Plan.from_json(run.plan, run.proposer), run.settings))
        done = store.asks("done")
        told = conversations(study.nodes, done, store.calls())
        nodes = {told[node.id][0].ask_id: node for node in study.nodes if node.id in told}
        changed = {
            record.ask.id: _change(study, record.ask, nodes[record.ask.id])
            for record in done
            if record.ask.id in nodes
        }
    table = Table("ask", "step", "what changed", box=None)
    for ask_id, change in changed.items():
        if change:
            table.add_row(str(ask_id), str(nodes[ask_id].id), change)
    if table.row_count:
        console.print(table)
    same = sum(not change for change in changed.values())
    console.print(f"{same} of {len(changed)} asks lead to what was recorded", highlight=False)
    return 0 if same == len(changed) else 1


def _change(study: Study, ask: Ask, node: Node) -> str:
    _, proposal = study.retrace(ask)
    if proposal is None:
        return "its replies no longer suffice"
    if proposal.candidate != node.candidate:
        return proposal.failure or "its source differs"
    return ""
