"""Going through a recorded run again: what would be otherwise today."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from adaexplore.run import Plan, model_proposers
from adaexplore.store import read_run
from adaexplore_lab.replay import Part, retrace

_PARTS: dict[Part, str] = {
    "selection": "asks grow where they did and are shown the same",
    "prompt": "conversations ask the same",
    "candidate": "proposals are what was recorded",
}


def replay_run(path: Path) -> int:
    """Print the counts of equal parts, and the first difference of each part.

    The exit code: 1 if there is any.
    """
    console = Console()
    with read_run(path) as directory:
        store = directory.store
        run = store.run()
        proposers = model_proposers(Plan.of(run), run.config)
        retraced = retrace(store, proposers)
    for part, meaning in _PARTS.items():
        compared = retraced.compared.get(part, 0)
        differences = [each for each in retraced.differences if each.part == part]
        lines = [f"{compared - len(differences)} of {compared} {meaning}"]
        if differences:
            first = differences[0]
            lines.append(f"  the first that differs is ask {first.ask_id}: {first.what}")
        for line in lines:
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    return 1 if retraced.differences else 0
