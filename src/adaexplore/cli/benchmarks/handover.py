"""The options that hand a kernel to FlashInfer-Bench or SOL-ExecBench, and what they print."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from adaexplore.problems.solutions.delivery import Delivered, Delivery

FlashInferOption = Annotated[
    Path | None,
    typer.Option(
        "--flashinfer",
        metavar="DIR",
        help="Write the kernel as a Solution of FlashInfer-Bench, with a Trace for each timed "
        "workload, into the folder of a dataset; a new folder gets the definition too.",
    ),
]
SolOption = Annotated[
    Path | None,
    typer.Option(
        "--sol",
        metavar="DIR",
        help="The same for SOL-ExecBench, into a folder of tasks or that of the task.",
    ),
]


def require_definitions(
    problem: Path, flashinfer: Path | None, sol: Path | None, *, backward: bool
) -> None:
    """Raise `BadInputError` for a folder to hand over to, and a problem that is of no dataset, or
    a verdict on training steps, of which no dataset takes times."""
    from adaexplore.core.errors import BadInputError
    from adaexplore.problems.solutions.specification import holds_definitions

    if not (flashinfer or sol):
        return
    option = "--flashinfer" if flashinfer else "--sol"
    if backward:
        raise BadInputError(f"{option}: takes times of forward alone; leave out --with-backward")
    if not holds_definitions(problem):
        raise BadInputError(
            f"{option}: {problem} is of no dataset; give a dataset and --definition NAME"
        )


def hand_over(
    delivery: Delivery, flashinfer: Path | None, sol: Path | None, *, quiet: bool = False
) -> None:
    """Write a delivery for each folder, and print the files and what has no trace.

    With `quiet`, that goes to the standard error.
    """
    from adaexplore.problems.solutions.flashinfer import deliver_to_flashinfer
    from adaexplore.problems.solutions.sol import deliver_to_sol

    for folder, deliver in ((flashinfer, deliver_to_flashinfer), (sol, deliver_to_sol)):
        if folder:
            lines = _lines(delivery, deliver(delivery, folder))
            print("\n".join(lines), file=sys.stderr if quiet else sys.stdout)


def _lines(delivery: Delivery, done: Delivered) -> list[str]:
    count = len(delivery.specification.workloads)
    lines = [*map(str, done.written), f"traces: {done.traces} of {count} workloads"]
    lines += [f"  none for {each.workload}: {each.reason}" for each in done.left_out]
    if done.data_missing:
        count, first = len(done.data_missing), done.data_missing[0]
        lines.append(f"{count} file{'s'[: count > 1]} of tensors not there yet, such as {first}")
    return lines
