"""The declarations of a problem's file: workloads, bounds and labels, as one literal.

A file may bind `ADAEXPLORE` at its top level to a dictionary that is read, not run:

    ADAEXPLORE = {
        "workloads": [{"name": "short", "draw": "inputs(128)"},
                      {"name": "long", "draw": "inputs(4096)", "timed": False}],
        "tolerances": [{"rtol": 1e-2, "atol": 1e-3, "source": "SomeBench"}],
        "likenesses": [{"cosine": 0.95, "l1": 0.05, "rmse": 0.1, "source": "SomeBench"}],
        "labels": {"uniform-inputs": "its benchmark draws inputs between 0 and 1 alone"},
    }
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Likeness, Problem, Tolerance, Workload

NAME = "ADAEXPLORE"
_WORKLOAD = {"name": str, "draw": str, "timed": bool}
_TOLERANCE = {"rtol": float, "atol": float, "source": str, "matched": float, "workload": str}
_LIKENESS = {"cosine": float, "l1": float, "rmse": float, "source": str}
_PARTS = ("workloads", "tolerances", "likenesses", "labels")


@dataclass(frozen=True, slots=True)
class Declared:
    """The declarations of a file, each empty where it makes none; `labels` are name and reason."""

    workloads: tuple[Workload, ...] = ()
    tolerances: tuple[Tolerance, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    likenesses: tuple[Likeness, ...] = ()

    def over(self, problem: Problem) -> Problem:
        """Return the problem with the declarations; its own workloads where none is declared."""
        checks = problem.checks
        return replace(
            problem,
            workloads=self.workloads or problem.workloads,
            checks=replace(
                checks,
                tolerances=(*checks.tolerances, *self.tolerances),
                likenesses=(*checks.likenesses, *self.likenesses),
            ),
            labels=(*problem.labels, *self.labels),
        )


def with_declared(text: str, declared: Declared) -> str:
    """Return the text of a problem's file with declarations at its end."""
    workloads = [{key: asdict(one)[key] for key in _WORKLOAD} for one in declared.workloads]
    tolerances = [asdict(one) for one in declared.tolerances]
    likenesses = [asdict(one) for one in declared.likenesses]
    parts = zip(_PARTS, (workloads, tolerances, likenesses, dict(declared.labels)), strict=True)
    lines = [f"    {key!r}: {value!r},\n" for key, value in parts if value]
    return f"{text.rstrip()}\n\n\n{NAME} = {{\n{''.join(lines)}}}\n" if lines else text


def declared_in(tree: ast.Module, file: Path) -> Declared:
    """Return the declarations in a syntax tree.

    Raises `BadProblemError`, in one line with file and line, for one that cannot be understood.
    """
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == NAME for target in targets):
            assert isinstance(node, ast.Assign)
            try:
                return _declared(ast.literal_eval(node.value))
            except (ValueError, TypeError, SyntaxError) as error:
                raise BadProblemError(
                    f"{file}, line {node.lineno}: {NAME} is no literal that declares workloads, "
                    f"bounds and labels: {error}"
                ) from None
    return Declared()


def _declared(data: Any) -> Declared:
    if not isinstance(data, dict) or data.keys() - set(_PARTS):
        raise ValueError(f"write a dictionary with the keys {', '.join(_PARTS)}")
    labels = data.get("labels", {})
    if not isinstance(labels, dict) or not all(
        isinstance(x, str) for p in labels.items() for x in p
    ):
        raise ValueError('labels: write {"name": "reason"}')
    workloads = tuple(Workload(**row) for row in _rows(data, "workloads", _WORKLOAD))
    if len({workload.name for workload in workloads}) < len(workloads):
        raise ValueError("workloads: two have one name")
    tolerances = tuple(Tolerance(**row) for row in _rows(data, "tolerances", _TOLERANCE))
    likenesses = tuple(Likeness(**row) for row in _rows(data, "likenesses", _LIKENESS))
    return Declared(workloads, tolerances, tuple(labels.items()), likenesses)


def _rows(data: dict[str, Any], part: str, kinds: dict[str, type]) -> Iterator[dict[str, Any]]:
    """Yield the dictionaries of a part, whose values are of these kinds."""
    rows = data.get(part, [])
    if not isinstance(rows, list | tuple) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{part}: write a list of dictionaries")
    for row in rows:
        for key, value in row.items():
            kind = kinds.get(key)
            if kind is None:
                raise ValueError(f"{part}: no key {key!r}; known: {', '.join(kinds)}")
            if not isinstance(value, (int, float) if kind is float else kind):
                raise ValueError(f"{part}: {key} = {value!r} is no {kind.__name__}")
        yield row
