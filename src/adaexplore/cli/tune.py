"""The command that varies the numbers in a run's best kernel: tune."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from adaexplore.cli.inspect import show_end
from adaexplore.cli.progress import SearchProgress
from adaexplore.cli.run import start_session
from adaexplore.core.errors import BadInputError
from adaexplore.core.listener import follow
from adaexplore.run.search import Search
from adaexplore.run.session import INTERRUPTED
from adaexplore.store import open_run


def tune(path: Path, variants: int, parallel: int) -> int:
    """Has so many variants of the best kernel in all; the exit code.

    Raises `BadInputError` for a run in which nothing is correct.
    """
    console = Console()
    with open_run(path) as directory, ExitStack() as stack:
        store = directory.store
        run = store.run()
        if not any(node.evaluation.status == "passed" for node in store.nodes()):
            raise BadInputError(f"{path} has no correct kernel to tune yet")
        done, status = store.node_count(), 0
        try:
            running = start_session(stack, console, run.problem, run.config, parallel)
            with SearchProgress(console, done + variants, done) as progress:
                search = Search(
                    store,
                    running.tuning(run.problem),
                    running.evaluator,
                    directory.best_path,
                    parallel=parallel,
                )
                follow(search.tune(variants), progress)
        except KeyboardInterrupt:
            console.print("stopped; the same command goes on", highlight=False)
            status = INTERRUPTED
        show_end(console, directory)
    return status
