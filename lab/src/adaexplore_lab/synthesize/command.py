"""The command that makes tasks to learn on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.progress import Progress

from adaexplore.core import BadInputError, BudgetSpentError, Config, make_config
from adaexplore.evaluate import EXAMINE_JOB
from adaexplore.problems import STRUCTURE_PRELOAD, benchmark_structures, structures_in
from adaexplore.run import Plan, open_clients
from adaexplore.sandbox import ForkServer
from adaexplore_lab.synthesize.author import Author, Unusable
from adaexplore_lab.synthesize.collect import GRAMMAR, attempts, collect
from adaexplore_lab.synthesize.folder import TaskFolder
from adaexplore_lab.synthesize.task import STYLES, Origin
from adaexplore_lab.synthesize.validate import Validated, Validator


def synthesize(
    output: Path,
    *,
    count: int,
    seed: int,
    styles: str,
    model: str,
    budget: str,
    exclude: Sequence[Path],
) -> int:
    """Add `count` tasks to a folder; return the exit code: 1 if there are fewer."""
    console = Console()
    chosen = _styles(styles, model)
    if budget and not model:
        raise BadInputError("--budget goes with --model; there is none")
    config = make_config({"model": model, **({"budget": budget} if budget else {})})
    folder = TaskFolder(output)
    kept, seen = folder.tasks(), Counter[str]()
    with _author(config) as author, _server() as server:
        validator = Validator(
            server, EXAMINE_JOB, benchmarks=_benchmarks(exclude, server), known=folder.known
        )
        results = collect(attempts(chosen, seed, author, kept), validator, count)
        with _progress(console, count) as advance:
            try:
                for found in results:
                    if isinstance(found, Validated) and not found.why:
                        folder.add(found)
                        kept.append(found.task)
                        advance()
                    _tell(console, found, seen)
            except BudgetSpentError as error:
                console.print(str(error), highlight=False, markup=False)
    console.print(
        f"{output}: {seen['kept']} tasks kept of {seen.total()} tried; "
        f"{seen['duplicate']} had a structure that is there already",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    return 0 if seen["kept"] == count else 1


def _styles(text: str, model: str) -> list[Origin]:
    """Return the styles to use in turn: all those of a model if there is one, else the grammar."""
    known: tuple[Origin, ...] = get_args(Origin)
    chosen = [style.strip() for style in text.split(",") if style.strip()]
    for style in chosen:
        if style not in known:
            raise BadInputError(f"--styles {style}: no such style; there are {', '.join(known)}")
        if style != GRAMMAR and not model:
            raise BadInputError(f"--styles {style} needs a --model; without one there is {GRAMMAR}")
    if model and chosen == [GRAMMAR]:
        raise BadInputError(f"--model {model}: --styles {GRAMMAR} asks no model")
    return [style for style in known if style in chosen] or ([*STYLES] if model else [GRAMMAR])


def _benchmarks(folders: Sequence[Path], server: ForkServer) -> dict[str, str]:
    """The structures that no task may have: those the package knows, and those in folders."""
    found = benchmark_structures()
    for folder in folders:
        found |= structures_in(folder, server, lambda _name, _why: None)
    return found


@contextmanager
def _author(config: Config) -> Iterator[Author | None]:
    """Open the author that asks the model; yield None without a model."""
    with open_clients(config, Plan(config.model)) as clients:
        client = next(iter(clients.values()), None)
        yield Author(client) if client else None


@contextmanager
def _server() -> Iterator[ForkServer]:
    server = ForkServer.start([*STRUCTURE_PRELOAD, EXAMINE_JOB.partition(":")[0]])
    try:
        yield server
    finally:
        server.close()


@contextmanager
def _progress(console: Console, total: int) -> Iterator[Callable[[], None]]:
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("synthesizing", total=total)
        yield lambda: progress.advance(bar)


def _tell(console: Console, found: Validated | Unusable, seen: Counter[str]) -> None:
    """Count an attempt; print the reason in one line if it is refused."""
    who = found.style if isinstance(found, Unusable) else found.task.name
    if not found.why:
        seen["kept"] += 1
    else:
        seen["duplicate" if "structure of" in found.why else "refused"] += 1
    if found.why:
        console.print(f"{who}: {found.why}", highlight=False, markup=False, soft_wrap=True)
