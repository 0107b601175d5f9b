"""Cost of a long search itself: selecting, recording, resuming, reporting.

    python lab/benchmarks/large_tree.py --steps 10000

Grows trees over a simulated landscape, with every policy in memory, and with one through a ledger
and its store, as a run does. Prints milliseconds of each of the last hundred steps (the median and
the slowest), seconds to resume, and seconds and megabytes of the report. These are of processor
time, since every step of a run waits for the disk, which is told apart.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from statistics import median
from typing import get_args

from adaexplore.core import (
    ROOT_ID,
    Candidate,
    Config,
    Context,
    Environment,
    Evaluation,
    PolicyName,
    Problem,
    Prompt,
    Proposal,
    Reply,
    rank,
)
from adaexplore.report import render
from adaexplore.run import Ledger, summary_of
from adaexplore.search import POLICIES, Tree, context_ids, reward_function, step_rng
from adaexplore.store import RunRecord, create_run, open_run
from adaexplore_lab.simulate import SYNTHETIC, SimulatedKernel

LAST = 100
SOURCE_LINES = 80


class Silent:
    """Proposes sources of some length: a large step new ones, a small one changes a line."""

    def begin(self, context: Context) -> Generator[Prompt, Reply, Proposal]:
        """Ask nobody."""
        yield from ()
        draw = random.Random(context.seed)
        lines = [f"    x = x + {draw.randrange(300)}" for _ in range(SOURCE_LINES)]
        if context.window:
            changed = draw.randrange(SOURCE_LINES)
            new, lines = lines[changed], context.window[-1].candidate.source.split("\n")
            lines[changed] = new
        return Proposal(Candidate("\n".join(lines), "cpp"), "silent", f"seed {context.seed}")

    def close(self) -> None:
        """Nothing to end."""


def in_memory(name: PolicyName, steps: int) -> list[float]:
    """Milliseconds of the last steps: select, expand and record in the tree and the policy."""
    settings = Config(policy=name)
    policy, tree, reward = POLICIES[name](settings), Tree(), reward_function(settings.reward)
    world, kernels, spent = SYNTHETIC["families"].world(0), list[SimulatedKernel](), []
    for step in range(1, steps + 1):
        clock = time.process_time()
        rng = step_rng(0, step)
        selection = policy.select(tree, rng)
        shown = context_ids(tree, selection, settings, rng)
        tree.begin(selection.node_id, selection.step_kind)
        selecting = time.process_time() - clock
        at = selection.node_id
        parent = kernels[at - 1] if at != ROOT_ID else None
        kernel = world.grow(parent, selection.step_kind, [kernels[i - 1] for i in shown], rng)
        kernels.append(kernel)
        evaluation = kernel.evaluation
        clock = time.process_time()
        tree.end(at, selection.step_kind)
        tree.add(step, at, selection.step_kind, reward(evaluation), rank(evaluation))
        policy.record(tree, step, kernel.look)
        spent.append(1e3 * (selecting + time.process_time() - clock))
    return spent[-LAST:]


def in_a_run(path: Path, steps: int) -> tuple[list[float], list[float]]:
    """Milliseconds of the last steps through a ledger and its store, proposals left out.

    Of processor time, and of waiting.
    """
    record = RunRecord(
        problem=Problem("large", "class Model: ...", "cpp", "cpu"),
        config=Config(seed=0, steps=steps),
        proposers=("silent",),
        environment=Environment(),
        command="",
        created_at=0.0,
    )
    world, kernels = SYNTHETIC["families"].world(0), list[SimulatedKernel]()
    spent, waited = [], []
    with create_run(path, record) as run:
        ledger = Ledger(run.store, {"silent": Silent()})
        for step in range(1, steps + 1):
            clock, wall = time.process_time(), time.perf_counter()
            ask = ledger.ask("silent")
            selecting, waiting = time.process_time() - clock, time.perf_counter() - wall
            _, proposal = ledger.turn(ask.id)
            assert isinstance(proposal, Proposal)  # it asks nobody
            parent = kernels[ask.parent_id - 1] if ask.parent_id else None
            shown = [kernels[i - 1] for i in ask.pool]
            kernels.append(world.grow(parent, ask.step_kind, shown, random.Random(step)))
            evaluation: Evaluation = kernels[-1].evaluation
            clock, wall = time.process_time(), time.perf_counter()
            ledger.record(ask, proposal, evaluation)
            spent.append(1e3 * (selecting + time.process_time() - clock))
            waited.append(1e3 * (waiting + time.perf_counter() - wall) - spent[-1])
    return spent[-LAST:], waited[-LAST:]


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    clock = time.process_time()
    work()
    return time.process_time() - clock


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--report", type=Path, help="where to leave the report")
    asked = parser.parse_args()
    for name in get_args(PolicyName):
        spent = in_memory(name, asked.steps)
        print(f"{name:10} {median(spent):7.3f} ms a step, at most {max(spent):.3f}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        spent, waited = in_a_run(path, asked.steps)
        print(f"in a run   {median(spent):7.3f} ms a step, at most {max(spent):.3f}")
        print(f"           {median(waited):7.3f} ms a step waiting, at most {max(waited):.3f}")
        with open_run(path) as run:
            print(f"resume: {timed(lambda: Ledger(run.store, {})):.2f} s")
            clock = time.process_time()
            page = render(summary_of(run.store, path))
            print(f"report: {time.process_time() - clock:.1f} s, {len(page) / 1e6:.1f} MB")
    if asked.report:
        asked.report.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
