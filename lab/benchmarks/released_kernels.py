"""Judges released kernels, beside the criterion and the speedups that were published with them.

    python lab/benchmarks/released_kernels.py \\
        --kernels AdaExplore/results/saved_kernels/kernelbench \\
        --problems KernelBench/KernelBench --device cuda:0 --parallel 6 --out released.jsonl
    python lab/benchmarks/released_kernels.py ... --device cpu --target sm_90 --out offline.jsonl
    python lab/benchmarks/released_kernels.py --compare offline.jsonl released.jsonl

`--kernels` holds `level<n>/<id>.py` and `metrics_level<n>.json`, `--problems` KernelBench's
`level<n>/<id>_<name>.py`. Each kernel is judged in the strictest precision class that it reaches,
so that its speedup is like for like. One line of `--out` is written per kernel; what stands there
already is not judged again. The order mixes the levels, so that an early stop leaves a mix.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from lanes import Lane
from released_tables import comparison, report
from rich.progress import Progress

import adaexplore
from adaexplore.core import (
    PRECISIONS,
    AdaExploreError,
    BadProblemError,
    Candidate,
    Failed,
    Language,
    Passed,
    Problem,
    evaluation_to_json,
)

HOPELESS = 0.1
"""Relative error from which no looser class is tried: bfloat16 autocast is 10 times better."""

_FACTS = ("labels", "notes", "precision", "errors", "estimate", "variants")
_CRITERION = "published_criterion:judge"
_CRITERION_S = 60.0


@dataclass(frozen=True, slots=True)
class Released:
    """A released kernel, its problem's file and what was published about it."""

    level: int
    id: int
    kernel: Path
    problem: Path
    metrics: dict[str, Any]

    @property
    def key(self) -> list[int]:
        """Level and number, as rows have them."""
        return [self.level, self.id]

    @property
    def name(self) -> str:
        """Level and the problem's name."""
        return f"{self.level}/{self.problem.stem}"

    def recorded(self) -> dict[str, Any]:
        """The published speedups: over a recorded baseline, and over one timed beside it."""
        found = {}
        for name in ("recorded_baseline", "measured_baseline"):
            stats = self.metrics.get(name, {}).get("runtime_stats", {})
            found[name.removesuffix("_baseline")] = stats.get("fast_p")
        return found


def main() -> None:
    """Judge the remaining kernels, then print the tables."""
    options = _options()
    if options.compare:
        print(comparison(*(read(path) for path in options.compare)))
        return
    chosen = list(released(options.kernels, options.problems, options.levels, options.ids))
    done = {
        tuple(row["key"])
        for row in read(options.out)
        if not (options.again and (row["stopped"] or row["unjudged"]))
    }
    left = [kernel for kernel in mixed(chosen) if tuple(kernel.key) not in done]
    _judge_all(left, options)
    keys = [kernel.key for kernel in chosen]
    print(report([row for row in read(options.out) if row["key"] in keys]))


def released(
    kernels: Path, problems: Path, levels: list[int], ids: list[int] | None
) -> Iterator[Released]:
    """The kernels of these levels, and numbers if given, whose problem is there."""
    for level in levels:
        file = kernels / f"metrics_level{level}.json"
        metrics = json.loads(file.read_text(encoding="utf-8"))["problems"] if file.exists() else {}
        for kernel in sorted((kernels / f"level{level}").glob("[0-9]*.py")):
            number = int(kernel.stem.partition("_")[0])
            files = list((problems / f"level{level}").glob(f"{number}_*.py"))
            if len(files) == 1 and (not ids or number in ids):
                yield Released(level, number, kernel, files[0], metrics.get(str(number), {}))


def read(path: Path) -> list[dict[str, Any]]:
    """The last row of each kernel in a file; none where there is no file yet."""
    if not path.exists():
        return []
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return list({tuple(row["key"]): row for row in rows}.values())


def mixed(kernels: list[Released]) -> list[Released]:
    """An order in which every part from the beginning has each level's share, and any numbers."""
    rng = random.Random(0)
    places = []
    for level in sorted({kernel.level for kernel in kernels}):
        own = [kernel for kernel in kernels if kernel.level == level]
        rng.shuffle(own)
        places += [((i + 0.5) / len(own), kernel) for i, kernel in enumerate(own)]
    return [kernel for _, kernel in sorted(places, key=lambda place: place[0])]


def _judge_all(left: list[Released], options: argparse.Namespace) -> None:
    deadline = time.monotonic() + options.budget_s
    lanes: SimpleQueue[Lane] = SimpleQueue()
    every = [Lane(offline=options.target is not None) for _ in range(options.parallel)]
    for lane in every:
        lanes.put(lane)

    def judge(kernel: Released) -> dict[str, Any] | None:
        lane = lanes.get()
        try:
            limit_s = min(deadline - time.monotonic(), options.limit_s)
            return _row(lane, kernel, options, limit_s) if limit_s > 0 else None
        finally:
            lanes.put(lane)

    options.out.parent.mkdir(parents=True, exist_ok=True)
    with (
        Progress() as progress,
        options.out.open("a", encoding="utf-8") as out,
        ThreadPoolExecutor(options.parallel) as threads,
    ):
        task = progress.add_task("judging", total=len(left))
        for pending in as_completed([threads.submit(judge, kernel) for kernel in left]):
            row = pending.result()
            progress.advance(task)
            if row is None or (row["stopped"] and time.monotonic() >= deadline):
                continue  # no time left, for want of budget: the next run takes it up
            out.write(json.dumps(row) + "\n")
            out.flush()
            progress.console.print(f"{row['name']}: {_one_line(row)}", markup=False)
    for lane in every:
        lane.close()


def _row(
    lane: Lane, kernel: Released, options: argparse.Namespace, limit_s: float
) -> dict[str, Any]:
    """All that is said of one kernel; "stopped" where it took longer than `limit_s`."""
    started = time.monotonic()
    row: dict[str, Any] = {
        "key": kernel.key,
        "name": kernel.name,
        "device": options.device,
        "target": options.target,
        "recorded": kernel.recorded(),
        "attempts": [],
        "criterion": None,
        "facts": {},
        "stopped": "",
        "unjudged": "",
    }
    try:
        lane.within(limit_s, lambda: _fill(row, lane, kernel, options))
    except TimeoutError as error:
        row["stopped"] = str(error)
    except BadProblemError as error:
        row["unjudged"] = str(error)
    except (AdaExploreError, RuntimeError) as error:
        row["unjudged"] = f"{type(error).__name__}: {error}"
        lane.close()
    return row | {"wall_s": round(time.monotonic() - started, 2)}


def _fill(row: dict[str, Any], lane: Lane, kernel: Released, options: argparse.Namespace) -> None:
    source = kernel.kernel.read_text(encoding="utf-8")
    if options.target is None:  # the criterion runs kernels, which takes their device
        request = {
            "reference": kernel.problem.read_text(encoding="utf-8"),
            "candidate": source,
            "device": options.device,
        }
        row["criterion"] = _criterion(lane, request)
    for precision in PRECISIONS:
        if precision == "tf32" and options.device == "cpu" and not options.target:
            continue  # there is none on a CPU
        problem = _problem(kernel, options, precision)
        started = time.monotonic()
        with lane.evaluator(problem, options.timeout_s) as evaluator:
            facts = evaluator.prepare()
            prepared = time.monotonic()
            evaluation = evaluator.evaluate(Candidate(source, problem.language))
        row["facts"] = {key: value for key, value in facts.to_json().items() if key in _FACTS}
        row["attempts"].append(
            {
                "precision": precision,
                "evaluation": evaluation_to_json(evaluation),
                "prepare_s": round(prepared - started, 2),
                "evaluate_s": round(time.monotonic() - prepared, 2),
            }
        )
        if isinstance(evaluation, Passed) or not _may_pass_looser(evaluation):
            return


def _criterion(lane: Lane, request: dict[str, Any]) -> dict[str, Any]:
    """Apply the published criterion; a kernel that kills its process fails it."""
    try:
        return lane.job(_CRITERION, request, request["device"], _CRITERION_S)
    except TimeoutError:
        return {"passes": False, "why": f"not done after {_CRITERION_S:.0f} s"}
    except RuntimeError as error:  # it died, or took more than its limits
        return {"passes": False, "why": str(error)}


def _may_pass_looser(failed: Failed) -> bool:
    """Return True if a looser precision class may accept the candidate."""
    error = failed.error
    return failed.status == "wrong_output" and error is not None and error < HOPELESS


def _problem(kernel: Released, options: argparse.Namespace, precision: Any) -> Problem:
    language: Language = "triton" if options.target or options.device != "cpu" else "cpp"
    problem = adaexplore.load_problem(
        kernel.problem, device=options.device, language=language, precision=precision
    )
    return replace(problem, target=options.target)


def _one_line(row: dict[str, Any]) -> str:
    if unfinished := row["stopped"] or row["unjudged"]:
        return str(unfinished)
    last = row["attempts"][-1]["evaluation"]
    if last["status"] != "passed":
        return f"{last['status']}: {last['reason']}"
    gain = f", {last['speedup']:.2f}x" if last.get("speedup") else ""
    return f"passed as {last['precision']}{gain}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=Path, help="folder with level<n>/<id>.py")
    parser.add_argument("--problems", type=Path, help="folder with level<n>/<id>_<name>.py")
    parser.add_argument("--levels", nargs="+", type=int, default=[2, 3])
    parser.add_argument("--ids", nargs="+", type=int, help="only these numbers")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--target", help="on the CPU: the GPU to compile for, such as sm_90")
    parser.add_argument("--parallel", type=int, default=1, help="kernels at once")
    parser.add_argument("--budget-s", type=float, default=math.inf, help="seconds; then stop")
    parser.add_argument("--limit-s", type=float, default=240.0, help="seconds for one kernel")
    parser.add_argument("--timeout-s", type=float, default=60.0, help="for one evaluation")
    parser.add_argument("--out", type=Path, default=Path("runs/released.jsonl"))
    parser.add_argument(
        "--again", action="store_true", help="also what was stopped or could not be judged"
    )
    parser.add_argument("--compare", nargs=2, type=Path, metavar="FILE", help="two such files")
    options = parser.parse_args()
    if not options.compare and not (options.kernels and options.problems):
        parser.error("give --kernels and --problems, or --compare")
    if math.isinf(options.budget_s):
        options.budget_s = 1e9
    return options


if __name__ == "__main__":
    main()
