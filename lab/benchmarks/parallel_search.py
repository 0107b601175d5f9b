"""Wall time and quality of searches with several steps under way, beside one at a time.

    python lab/benchmarks/parallel_search.py examples/problems/mlp_block.py --device cpu \\
        --steps 12 --pool 24 --latency-s 5 --parallel 1 4 --out runs/parallel.json
    python lab/benchmarks/parallel_search.py KernelBench/level2/76_*.py --candidates kernels/76 \\
        --steps 50 --parallel 1 8 --budget-s 540 --out runs/parallel.json

The model is simulated and everything else is real. It takes `--latency-s` seconds a reply (between
half and one and a half times that, drawn by the reply's number). One step at a time nothing else
goes on meanwhile, so those seconds are added to the clock and not waited for, unless `--wait` is
given. It answers with a candidate of a pool: the one most like the parent for a small step, any for
a large one, and none twice while there are others. So what comes of a search depends on where it
looks, as with a model. The pool is `--candidates`, a folder of sources, or else what the compiler
proposer makes of the problem, kept in `--runs`; it had better hold twice as many as there are
steps.

Searches lie in `--runs`; one that is there already goes on, its clock too, so that the whole can
be cut into pieces by `--budget-s`. `--out` is written after every step. `speedup` is the winner's,
measured again.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console

import adaexplore
from adaexplore.core import (
    Candidate,
    Config,
    Context,
    Dialogue,
    Failed,
    Listener,
    Message,
    Node,
    Passed,
    Problem,
    Prompt,
    Proposal,
    Reply,
    best_correct,
    follow,
    parse_settings,
)
from adaexplore.run import Search, Session, open_session
from adaexplore.store import RunRecord, Store, create_run, open_run

MODEL = "simulated:model"


def main() -> None:
    """Run the searches one after the other; write and print their figures."""
    options = _options()
    console = Console()
    deadline = time.monotonic() + options.budget_s
    found: dict[str, Any] = {"latency_s": options.latency_s, "searches": []}

    def write(row: dict[str, Any]) -> None:
        options.out.write_text(
            json.dumps(found | {"searches": [*found["searches"], row]}, indent=1) + "\n",
            encoding="utf-8",
        )

    for path in options.problems:
        problem = adaexplore.load_problem(
            path, device=options.device, precision=options.precision, seed=options.seed
        )
        sources = pool(problem, options, deadline)
        for parallel in options.parallel:
            if time.monotonic() < deadline:
                row = search(problem, sources, parallel, options, deadline, write)
                found["searches"].append(row)
                console.print(sentence(row), highlight=False, soft_wrap=True)
    for line in comparisons(found["searches"]):
        console.print(line, highlight=False, soft_wrap=True)


def pool(problem: Problem, options: argparse.Namespace, deadline: float) -> list[str]:
    """The sources that the simulated model knows for a problem."""
    folder = options.candidates or options.runs / f"{problem.name}-pool"
    known = [file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.py"))]
    if options.candidates is None and len(known) < options.pool:
        folder.mkdir(parents=True, exist_ok=True)
        with open_session(problem, options.settings) as running:
            _generate(running, problem, folder, known, options, deadline)
    if not known:
        raise SystemExit(f"{folder}: no candidates for {problem.name}")
    return known


def _generate(
    running: Session,
    problem: Problem,
    folder: Path,
    known: list[str],
    options: argparse.Namespace,
    deadline: float,
) -> None:
    """Let the compiler propose until there are enough, or three rounds bring nothing new."""
    proposer = running.compiler(options.settings)
    nodes: list[Node] = []
    in_flight = max(len(os.sched_getaffinity(0)) // 2, 1)
    barren = 0
    with ThreadPoolExecutor(in_flight) as threads:
        while len(known) < options.pool and barren < 3 and time.monotonic() < deadline:
            contexts = [
                Context(problem, "large", len(nodes) + i, history=tuple(nodes), in_flight=i)
                for i in range(in_flight)
            ]
            before = len(known)
            for proposal in threads.map(lambda c: _proposal(proposer.begin(c)), contexts):
                source, failed = proposal.candidate.source, Failed("rejected", "not judged")
                nodes.append(Node(len(nodes) + 1, 0, "large", proposal, failed))
                if source and source not in known:
                    known.append(source)
                    (folder / f"{len(known):03}.py").write_text(source, encoding="utf-8")
            barren = barren + 1 if len(known) == before else 0


def _proposal(dialogue: Dialogue) -> Proposal:
    try:
        next(dialogue)
    except StopIteration as end:
        proposal: Proposal = end.value
        return proposal
    raise AssertionError("the compiler asks nobody")


class SimulatedModel:
    """A client that takes its time and answers from a pool; `given` are its earlier replies.

    Where it does not wait, `saved_s` is how long it would have.
    """

    model = MODEL

    def __init__(
        self,
        sources: Sequence[str],
        latency_s: float,
        seed: int,
        given: Sequence[str],
        *,
        waits: bool,
    ) -> None:
        self.saved_s = 0.0
        self._waits = waits
        self._sources = list(sources)
        self._latency_s = latency_s
        self._rng = random.Random(seed)
        self._given = Counter(given)
        self._number = len(given)
        self._lock = threading.Lock()

    def ask(self, prompt: Prompt) -> Reply:
        """A candidate, after a while."""
        with self._lock:
            self._number += 1
            latency_s = self._latency_s * random.Random(self._number).uniform(0.5, 1.5)
        if self._waits:
            time.sleep(latency_s)
        else:
            self.saved_s += latency_s
        with self._lock:
            return Reply(self._choose(prompt.messages[-1].text), MODEL, latency_s=latency_s)

    def close(self) -> None:
        """Nothing to release."""

    def _choose(self, parent: str) -> str:
        fewest = min(self._given[source] for source in self._sources)
        fresh = [source for source in self._sources if self._given[source] == fewest]
        chosen = (
            max(fresh, key=lambda source: likeness(source, parent))
            if parent
            else self._rng.choice(fresh)
        )
        self._given[chosen] += 1
        return chosen


def likeness(a: str, b: str) -> float:
    """Share of the lines that two sources have in common, in order."""
    return difflib.SequenceMatcher(None, a.splitlines(), b.splitlines(), autojunk=False).ratio()


class Asking:
    """Asks the simulated model for something like the parent, or for anything."""

    def begin(self, context: Context) -> Dialogue:
        """One call and one candidate."""
        parent = context.window[-1].candidate.source if context.step_kind == "small" else ""
        reply = yield Prompt((Message("user", parent),), context.step_kind)
        return Proposal(Candidate(reply.text, context.problem.language), "asking", "from the pool")

    def close(self) -> None:
        """Nothing to end."""


class Timeline(Listener):
    """When each step was recorded, in seconds of searching; kept in a file beside the run."""

    def __init__(self, path: Path, client: SimulatedModel, told: Callable[[], None]) -> None:
        self._path = path
        self._client = client
        self._told = told
        self.recorded_s: list[float] = json.loads(path.read_text()) if path.exists() else []
        self._began = time.monotonic() - (self.recorded_s[-1] if self.recorded_s else 0.0)

    def recorded(self, node: Node, *, best: bool) -> None:  # noqa: ARG002 - a listener's
        """See `explore.Listener`."""
        now = time.monotonic() + self._client.saved_s
        self.recorded_s.append(round(now - self._began, 3))
        self._path.write_text(json.dumps(self.recorded_s))
        self._told()


def search(
    problem: Problem,
    sources: Sequence[str],
    parallel: int,
    options: argparse.Namespace,
    deadline: float,
    write: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """One search, or the rest of it; its figures."""
    path = options.runs / f"{problem.name}-{parallel}-at-once-seed-{options.seed}"
    settings: Config = options.settings
    with ExitStack() as stack:
        started = time.monotonic()
        running = stack.enter_context(open_session(problem, settings, parallel))
        running.evaluator.prepare()
        prepare_s = time.monotonic() - started
        if not path.exists():
            record = RunRecord(
                problem=problem,
                config=settings.model_copy(update={"seed": options.seed, "steps": options.steps}),
                proposers=(MODEL,),
                environment=running.environment,
                command="benchmarks/parallel_search.py",
                created_at=time.time(),
            )
            create_run(path, record).close()
        directory = stack.enter_context(open_run(path))
        store = directory.store

        def figures() -> dict[str, Any]:
            head = {"problem": problem.name, "parallel": parallel, "pool": len(sources)}
            return head | {"prepare_s": prepare_s} | measured(store, timeline.recorded_s)

        client = SimulatedModel(
            sources,
            options.latency_s,
            options.seed,
            [call.reply.text for call in store.calls()],
            waits=options.wait or parallel > 1,
        )
        timeline = Timeline(path / "timeline.json", client, lambda: write(figures()))
        search = Search(
            store,
            {MODEL: Asking()},
            running.evaluator,
            directory.best_path,
            clients={MODEL: client},
            parallel=parallel,
            spent=lambda: None if time.monotonic() < deadline else "the time is over",
        )
        follow(search.run(), timeline)
        return figures()


def measured(store: Store, recorded_s: Sequence[float]) -> dict[str, Any]:
    """Return the results of a search and its costs."""
    nodes = store.nodes()
    wall_s = recorded_s[-1] if recorded_s else 0.0
    judged = [node for node in nodes if not node.reused]
    device_s = sum(node.evaluation.cost.device_s for node in judged)
    confirmed = {kept.node_id: kept.evaluation for kept in store.confirmations()}
    winner = confirmed.get(best_correct(confirmed) or 0)
    passed = winner.measured if winner else None
    best, curve = 0.0, []
    for node in nodes:
        timing = node.evaluation.measured
        best = max(best, timing.speedup if timing else 0.0)
        curve.append(round(best, 4))
    return {
        "steps": len(nodes),
        "wall_s": wall_s,
        "steps_per_hour": 3600 * len(nodes) / wall_s if wall_s else None,
        "speedup": passed.speedup if passed else None,
        "speedup_ci": list(passed.speedup_ci) if passed else None,
        "best_so_far": curve,
        "recorded_s": list(recorded_s),
        "passed": sum(isinstance(node.evaluation, Passed) for node in nodes),
        "reused": len(nodes) - len(judged),
        "device_share": device_s / wall_s if wall_s else None,
        "evaluate_s": sum(node.evaluation.cost.wall_s for node in judged),
        "propose_s": sum(node.propose_s for node in nodes),
    }


def sentence(row: dict[str, Any]) -> str:
    """A search in one line."""
    speedup = f"{row['speedup']:.3f}x" if row["speedup"] else "nothing confirmed"
    return (
        f"{row['problem']}, {row['parallel']} at once: {row['steps']} steps in "
        f"{row['wall_s']:.0f} s, {speedup}, device held {row['device_share'] or 0:.0%}"
    )


def comparisons(rows: Sequence[dict[str, Any]]) -> list[str]:
    """For each number at once: rate and quality over those of one at a time, on the same problems.

    Rates and speedups at equal steps: as many as the shorter of the two searches has made.
    """
    one = {row["problem"]: row for row in rows if row["parallel"] == 1}
    lines = []
    for parallel in sorted({row["parallel"] for row in rows} - {1}):
        rates, qualities = [], []
        for row in rows:
            alone = one.get(row["problem"])
            if row["parallel"] != parallel or alone is None:
                continue
            steps = min(row["steps"], alone["steps"])
            if steps:
                rates.append(alone["recorded_s"][steps - 1] / row["recorded_s"][steps - 1])
                best, best_alone = row["best_so_far"][steps - 1], alone["best_so_far"][steps - 1]
                qualities += [best / best_alone] if best and best_alone else []
        if rates and qualities:
            lines.append(
                f"{parallel} at once: {statistics.geometric_mean(rates):.2f} times the steps an "
                f"hour; best at equal steps {statistics.geometric_mean(qualities):.3f} of that of "
                f"one at a time, on {len(rates)} problems"
            )
    return lines


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="+", type=Path)
    parser.add_argument("--device", default=None)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--parallel", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--latency-s", type=float, default=20.0)
    parser.add_argument("--wait", action="store_true", help="also one step at a time")
    parser.add_argument("--candidates", type=Path, help="a folder of sources, for one problem")
    parser.add_argument("--pool", type=int, default=100, help="candidates of the compiler's")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], dest="pairs")
    parser.add_argument("--budget-s", type=float, default=float("inf"))
    parser.add_argument("--runs", type=Path, default=Path("runs/parallel"))
    parser.add_argument("--out", type=Path, default=Path("runs/parallel.json"))
    options = parser.parse_args()
    if options.candidates and len(options.problems) > 1:
        parser.error("--candidates are of one problem; give one")
    options.settings = parse_settings(options.pairs)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    return options


if __name__ == "__main__":
    main()
