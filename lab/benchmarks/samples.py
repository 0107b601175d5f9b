"""Cheats and honest kernels with their problems, for the checkers of others.

Our own are the corpora of `tests/adversarial`. Of the withdrawn CUDA-L1 release (a clone of
sekstini/CUDA-L1) those count as cheats that an audit names: `docs/results/cuda-l1-audit.json` says
why, for each. Of AdaExplore's release those count as honest that our judge found right on an H200,
as `docs/results/h200-released.jsonl` has them, without the label of a decoy.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_RESULTS = _ROOT / "docs" / "results"
_DECOY = "decoy"


@dataclass(frozen=True, slots=True)
class Sample:
    """A candidate, its problem, and what it is.

    `kind` is "cheat" or "honest". `aimed` marks a cheat that attacks a part of this package: what
    others make of it says nothing about them. `devices` are those that it can run on here. What is
    in CUDA C++ (`language`) is built when it is imported, which a confined worker may not do.
    """

    id: str
    kind: str
    family: str
    source: str
    problem: str
    devices: tuple[str, ...]
    language: str | None = None
    aimed: bool = False


def samples(
    *,
    withdrawn: Path | None = None,
    released: Path | None = None,
    kernelbench: Path | None = None,
    sol: Path | None = None,
) -> Iterator[Sample]:
    """Yield all samples; those of others where their clones are given."""
    yield from _ours()
    if withdrawn:
        yield from _withdrawn(withdrawn)
    if kernelbench:
        yield from _of_kernelbench(kernelbench)
    if sol:
        yield from _of_sol(sol)
    if released:
        yield from _released(released)


def _ours() -> Iterator[Sample]:
    sys.path.insert(0, str(_ROOT / "tests"))
    corpus = importlib.import_module("adversarial.corpus")
    for case in corpus.cases():
        source = case.path.read_text(encoding="utf-8")
        yield Sample(
            id=case.id,
            kind="cheat" if case.kind == "hacks" else "honest",
            family=case.family,
            source=source,
            problem=_whole((corpus.PROBLEMS / f"{case.problem}.py").read_text(encoding="utf-8")),
            devices=case.devices,
            language=case.language,
            aimed="adaexplore" in source,
        )


def _whole(problem: str) -> str:
    """Return a problem with `get_init_inputs`, which others demand and our loader does not."""
    if "get_init_inputs" in problem:
        return problem
    return f"{problem}\n\ndef get_init_inputs():\n    return []\n"


def _withdrawn(clone: Path) -> Iterator[Sample]:
    audit = json.loads((_RESULTS / "cuda-l1-audit.json").read_text(encoding="utf-8"))
    for key, family in audit["cheats"].items():
        folder = clone / "unpacked" / audit["folder"] / key
        source = (folder / "custom_code.py").read_text(encoding="utf-8")
        yield Sample(
            id=f"cuda-l1/{key}",
            kind="cheat",
            family=f"cuda-l1: {family}",
            source=source,
            problem=(folder / "ref_code.py").read_text(encoding="utf-8"),
            devices=("cuda",),
            language="cuda" if "load_inline" in source else None,
        )


def _of_kernelbench(clone: Path) -> Iterator[Sample]:
    problem = clone / "KernelBench" / "level1" / "1_Square_matrix_multiplication_.py"
    for file in sorted((clone / "src/kernelbench/unit_tests/test_kernels").glob("*.py")):
        yield Sample(
            id=f"kernelbench/{file.stem}",
            kind="cheat",
            family="KernelBench's own",
            source=file.read_text(encoding="utf-8"),
            problem=problem.read_text(encoding="utf-8"),
            devices=("cuda",),
            language="cuda",
        )


def _of_sol(clone: Path) -> Iterator[Sample]:
    """Yield its cheats, which are functions for a driver of its own: for static checkers alone."""
    for file in sorted((clone / "tests/sol_execbench/samples").glob("evil_*/kernel.py")):
        source = file.read_text(encoding="utf-8")
        yield Sample(f"sol/{file.parent.name}", "cheat", "SOL-ExecBench's own", source, "", ())


def _released(clone: Path) -> Iterator[Sample]:
    kernels = clone / "results" / "saved_kernels" / "kernelbench"
    problems = clone / "datasets" / "KernelBench"
    for line in (_RESULTS / "h200-released.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        last = row["attempts"][-1]["evaluation"] if row["attempts"] else {}
        level, number = row["key"]
        if last.get("status") != "passed" or _DECOY in last["labels"]:
            continue
        [problem] = problems.glob(f"level{level}/{number}_*.py")
        yield Sample(
            id=f"adaexplore/{level}/{number}",
            kind="honest",
            family="released by AdaExplore",
            source=(kernels / f"level{level}" / f"{number}.py").read_text(encoding="utf-8"),
            problem=problem.read_text(encoding="utf-8"),
            devices=("cuda",),
        )
