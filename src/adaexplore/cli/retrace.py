"""Going through a run's recorded replies again, with the prompts and parsers of today."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from adaexplore.ask import Ask
from adaexplore.cli.proposers import COMPILER, Plan, model_proposers
from adaexplore.node import Node
from adaexplore.store import Store, read_run
from adaexplore.study import Study

_OTHER = "another candidate"


def retrace(path: Path) -> int:
    """Prints what is no longer as recorded; the exit code: 1 if a candidate is another one now."""
    console = Console()
    with read_run(path) as directory:
        store = directory.store
        run = store.run()
        study = Study(store, model_proposers(Plan.from_json(run.plan, run.proposer), run.settings))
        done = [record.ask for record in store.asks("done") if record.ask.proposer != COMPILER]
        nodes = _steps_of(done, study.nodes)
        changed = {ask.id: _change(study, store, ask, nodes[ask.id]) for ask in done}
    table = Table("ask", "step", "what changed", box=None)
    for ask_id, change in changed.items():
        if change:
            table.add_row(str(ask_id), str(nodes[ask_id].id), change)
    if table.row_count:
        console.print(table)
    same = sum(not change for change in changed.values())
    console.print(f"{same} of {len(changed)} asks are as recorded", highlight=False)
    return 1 if any(change.startswith(_OTHER) for change in changed.values()) else 0


def _steps_of(asks: list[Ask], nodes: list[Node]) -> dict[int, Node]:
    """The step that each ask became: the one that began when it was opened."""
    started = {(node.started_at, node.parent_id): node for node in nodes}
    return {ask.id: started[ask.opened_at, ask.parent_id] for ask in asks}


def _change(study: Study, store: Store, ask: Ask, node: Node) -> str:
    prompts, proposal = study.retrace(ask)
    if proposal is None:
        return f"{_OTHER}: its replies no longer suffice"
    if proposal.candidate != node.candidate:
        return f"{_OTHER}: {proposal.failure or 'its source differs'}"
    asked = [call.prompt.digest for call in store.calls(ask.id)]
    if [prompt.digest for prompt in prompts] != asked:
        return "prompts; the candidate is the same"
    return ""
