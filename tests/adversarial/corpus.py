"""The cases: what a case is, and how it is read from its file."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal, get_args

from adaexplore.core.problem import PRECISIONS, Language, Precision, Problem
from adaexplore.problems.kernelbench import load

ROOT = Path(__file__).parent
PROBLEMS = ROOT / "problems"

Kind = Literal["hacks", "honest"]
Expectation = Literal["accepted", "no-advantage", "refused", "labelled"]

KINDS: tuple[Kind, ...] = get_args(Kind)
_KEYS = {"problem", "devices", "language", "precision", "expect", "timeout_s", "judge", "step"}
_EXPECTED: dict[Kind, tuple[Expectation, ...]] = {
    "hacks": ("no-advantage", "refused", "labelled"),
    "honest": ("accepted",),
}
"""What a case may expect; the first is the default."""


class BadCaseError(ValueError):
    """A case's file has no valid header."""


@dataclass(frozen=True, slots=True)
class Case:
    """A candidate and what the evaluator must make of it.

    `expect` is "accepted" for an honest candidate. For a hack it is "no-advantage" (refused, or
    passed with a speedup that honest code gets), "refused" (to pass at all is to have cheated: a
    wrong output, or harm done), or "labelled" (it may pass where a label, of the problem or its
    own, keeps its speedup out of the ordinary means). `language` is None for what its device
    usually runs. `whole` asks for a judge with all baselines where others make do with a brief one.
    With `trains`, a call is a training step.
    """

    kind: Kind
    family: str
    name: str
    path: Path
    problem: str
    devices: tuple[str, ...]
    language: Language | None
    precision: Precision
    expect: Expectation
    timeout_s: float
    whole: bool = False
    trains: bool = False

    @property
    def id(self) -> str:
        """Unique among all cases: `hacks/<family>/<name>`."""
        return f"{self.kind}/{self.family}/{self.name}"

    def runs_on(self, device: str) -> bool:
        """Whether it is meant for a device name such as "cuda:0"."""
        return device.partition(":")[0] in self.devices

    def language_on(self, device: str) -> Language:
        """What it is written in; the device's usual language unless it names one."""
        return self.language or ("cpp" if device == "cpu" else "triton")

    def problem_on(self, device: str) -> Problem:
        """What it claims to be faster than."""
        problem = load(
            PROBLEMS / f"{self.problem}.py",
            device=device,
            language=self.language_on(device),
            precision=self.precision,
        )
        return replace(problem, checks=replace(problem.checks, backward=self.trains))


def cases(*only: str) -> list[Case]:
    """Every case whose id matches one of the globs `only`, also where that names a part of the id.

    Without globs, all cases.

    Raises `BadCaseError`, in one line with the file, for a case that is not written as it should.
    """
    found = [read(path) for kind in KINDS for path in sorted((ROOT / kind).glob("*/*.py"))]
    globs = [glob for part in only or ("*",) for glob in (part, f"*/{part}")]
    return [case for case in found if any(fnmatch(case.id, glob) for glob in globs)]


def read(path: Path) -> Case:
    """The case in the file at `path`, which is parsed and not run."""
    kind, family = path.parts[-3:-1]
    header = _header(path)
    if unknown := header.keys() - _KEYS:
        raise BadCaseError(f"{path}: unknown field {sorted(unknown)[0]!r}; known: {sorted(_KEYS)}")
    allowed = _EXPECTED[kind]
    case = Case(
        kind=kind,
        family=family,
        name=path.stem,
        path=path,
        problem=header.get("problem", ""),
        devices=tuple(header.get("devices", "").split()),
        language=header.get("language"),
        precision=header.get("precision", "fp32"),
        expect=header.get("expect", allowed[0]),
        timeout_s=float(header.get("timeout_s", "30")),
        whole=header.get("judge") == "whole",
        trains=header.get("step") == "training",
    )
    if not (PROBLEMS / f"{case.problem}.py").is_file():
        raise BadCaseError(f"{path}: no problem {case.problem!r} in {PROBLEMS}")
    if not case.devices or not set(case.devices) <= {"cpu", "cuda"}:
        raise BadCaseError(f"{path}: `devices:` must name cpu, cuda or both")
    if case.language not in (None, *get_args(Language)):
        raise BadCaseError(f"{path}: `language:` must be one of {get_args(Language)}")
    if case.precision not in PRECISIONS:
        raise BadCaseError(f"{path}: `precision:` must be one of {PRECISIONS}")
    if header.get("judge", "whole") != "whole":
        raise BadCaseError(f"{path}: `judge:` can only be whole")
    if header.get("step", "training") != "training":
        raise BadCaseError(f"{path}: `step:` can only be training")
    if case.expect not in allowed:
        raise BadCaseError(f"{path}: `expect:` must be one of {allowed}")
    return case


def _header(path: Path) -> dict[str, str]:
    """The `key: value` lines that make up the last paragraph of a file's docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    text = ast.get_docstring(tree) or ""
    lines = text.rpartition("\n\n")[2].splitlines()
    pairs = [line.partition(":") for line in lines]
    if not all(colon for _, colon, _ in pairs) or not pairs:
        raise BadCaseError(f"{path}: the docstring must end with a paragraph of `key: value` lines")
    return {key.strip(): value.strip() for key, _, value in pairs}
