"""Going through a run's recorded replies again, with the prompts and parsers of today."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from adaexplore.ask import Ask
from adaexplore.cli.proposers import COMPILER, Plan, model_proposers
from adaexplore.node import Node
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
        done = [record.ask for record in store.asks("done") if record.ask.proposer != COMPILER]
        nodes = _steps_of(done, study.nodes)
        changed = {ask.id: _change(study, ask, nodes[ask.id]) for ask in done}
    table = Table("ask", "step", "what changed", box=None)
    for ask_id, change in changed.items():
        if change:
            table.add_row(str(ask_id), str(nodes[ask_id].id), change)
    if table.row_count:
        console.print(table)
    same = sum(not change for change in changed.values())
    console.print(f"{same} of {len(changed)} asks lead to what was recorded", highlight=False)
    return 0 if same == len(changed) else 1


def _steps_of(asks: list[Ask], nodes: list[Node]) -> dict[int, Node]:
    """The step that each ask became: the one that began when it was opened."""
    started = {(node.started_at, node.parent_id): node for node in nodes}
    return {ask.id: started[ask.opened_at, ask.parent_id] for ask in asks}


def _change(study: Study, ask: Ask, node: Node) -> str:
    _, proposal = study.retrace(ask)
    if proposal is None:
        return "its replies no longer suffice"
    if proposal.candidate != node.candidate:
        return proposal.failure or "its source differs"
    return ""
