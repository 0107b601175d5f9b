"""Results in KernelBench's own layout, for its analysis script.

A folder for each level, since `eval_results.json` names problems by their numbers alone:

    NAME_level2/level_2_problem_37_sample_0_kernel.py
    NAME_level2/eval_results.json
    baseline_eager.json, baseline_strongest.json

A run of KernelBench has means where this package has medians: `mean` holds the median.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.core.verdict.evaluation import NOT_COMPILED, Evaluation, Passed, Timing

_PLACE = re.compile(r"(?:.*/)?level_?(?P<level>\d+)/(?P<file>(?P<number>\d+)_[^/]+\.py)")
EAGER, STRONGEST = "baseline_eager.json", "baseline_strongest.json"


@dataclass(frozen=True, slots=True)
class ProblemPlace:
    """A problem of KernelBench: level, number, and name of the file."""

    level: int
    number: int
    file: str

    @staticmethod
    def of(path: str) -> ProblemPlace | None:
        """Return the problem at a path such as `level2/37_Name.py`; None where it names none."""
        found = _PLACE.fullmatch(path)
        return found and ProblemPlace(int(found["level"]), int(found["number"]), found["file"])


@dataclass(frozen=True, slots=True)
class Sample:
    """A judged candidate for a problem, in the run `collection`.

    `source` is empty where no candidate is right enough to hand over; `why` says more.
    """

    collection: str
    place: ProblemPlace
    number: int
    source: str
    verdict: Evaluation | None
    compiled: bool
    hardware: str
    why: str = ""


def sample_of(
    collection: str, place: ProblemPlace, number: int, source: str, verdict: Evaluation, *, on: str
) -> Sample:
    """Return the sample of one verdict, given on the hardware `on`."""
    compiled = verdict.status not in NOT_COMPILED
    why = "" if isinstance(verdict, Passed) else verdict.reason
    return Sample(collection, place, number, source, verdict, compiled, on, why)


def write_results(samples: Sequence[Sample], folder: Path) -> list[Path]:
    """Write samples into a new or empty folder; return the folders of runs, and the baselines."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInputError(f"{folder} exists and is not empty; name another folder")
    runs: dict[Path, list[Sample]] = {}
    for one in samples:
        runs.setdefault(folder / f"{one.collection}_level{one.place.level}", []).append(one)
    try:
        for run, some in runs.items():
            _write_run(run, some)
        for name, pick in ((EAGER, _eager), (STRONGEST, _strongest)):
            _write_json(folder / name, _baselines(samples, pick))
    except OSError as error:
        raise BadInputError(f"cannot write {folder}: {error.strerror}") from error
    return [*runs, folder / EAGER, folder / STRONGEST]


def _write_run(run: Path, samples: Iterable[Sample]) -> None:
    run.mkdir(parents=True)
    results: dict[str, list[dict[str, Any]]] = {}
    for one in sorted(samples, key=lambda each: (each.place.number, each.number)):
        results.setdefault(str(one.place.number), []).append(_entry(one))
        if one.source:
            where = f"level_{one.place.level}_problem_{one.place.number}_sample_{one.number}"
            (run / f"{where}_kernel.py").write_text(one.source, encoding="utf-8")
    _write_json(run / "eval_results.json", results)


def _write_json(file: Path, data: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(data, indent=4) + "\n", encoding="utf-8")


def _entry(one: Sample) -> dict[str, Any]:
    timing = _timing(one)
    metadata: dict[str, Any] = {"hardware": one.hardware, "judged_by": "adaexplore"}
    if isinstance(one.verdict, Passed):
        metadata |= {"precision": one.verdict.precision, "labels": list(one.verdict.labels)}
    elif one.compiled:
        metadata["correctness_issue"] = one.why
    else:
        metadata["compilation_error"] = one.why
    if timing:
        metadata |= {"speedup_over_strongest": timing.speedup, "strongest": timing.strongest}
    return {
        "sample_id": one.number,
        "compiled": one.compiled,
        "correctness": isinstance(one.verdict, Passed),
        "metadata": metadata,
        "runtime": timing.time_us / 1e3 if timing else -1.0,
        "runtime_stats": _stats(timing.time_us, one) if timing else {},
    }


def _stats(time_us: float, one: Sample) -> dict[str, Any]:
    timing = _timing(one)
    assert timing
    return {
        "mean": time_us / 1e3,
        "statistic": "median",
        "num_trials": timing.samples,
        "hardware": one.hardware,
    }


def _baselines(
    samples: Iterable[Sample], pick: Callable[[Timing], float | None]
) -> dict[str, dict[str, Any]]:
    """Return the times of a baseline by level and file: of a problem's first timed sample."""
    levels: dict[str, dict[str, Any]] = {}
    for one in samples:
        timing = _timing(one)
        time_us = pick(timing) if timing else None
        if time_us is not None:
            level = levels.setdefault(f"level{one.place.level}", {})
            level.setdefault(one.place.file, _stats(time_us, one))
    return levels


def _eager(timing: Timing) -> float | None:
    return timing.baselines_us.get("eager")


def _strongest(timing: Timing) -> float | None:
    return timing.baselines_us.get(timing.strongest)


def _timing(one: Sample) -> Timing | None:
    return one.verdict.measured if one.verdict else None
