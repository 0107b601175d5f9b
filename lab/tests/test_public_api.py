"""The lab imports adaexplore by the public names of its package roots alone."""

import ast
import importlib
import re
from pathlib import Path

import pytest

LAB = Path(__file__).parents[1]
FILES = sorted([*(LAB / "src").rglob("*.py"), *(LAB / "benchmarks").rglob("*.py")])
ROOTS = {
    "adaexplore",
    *(f"adaexplore.{name}" for name in ("core", "run", "search", "store", "memory", "report")),
    *(f"adaexplore.{name}" for name in ("problems", "propose", "evaluate", "sandbox", "llm")),
    "adaexplore.cli",
    "adaexplore.serve",
}


def objections(source):
    """Yield a line for each import of adaexplore that is not public."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "adaexplore" and alias.name != "adaexplore":
                    yield f"import {alias.name}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "adaexplore":
            if node.module not in ROOTS:
                yield f"from {node.module}"
                continue
            public = importlib.import_module(node.module).__all__
            names = (alias.name for alias in node.names)
            yield from (f"{node.module}.{name}" for name in names if name not in public)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"^adaexplore\.\w+\.\w[\w.]*(?::\w+)?$", node.value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(LAB)))
def test_only_public_names_are_imported(path):
    assert list(objections(path.read_text())) == []


def test_private_imports_are_found():
    source = (
        "import adaexplore.run.asks.ledger\nfrom adaexplore.run.asks.ledger import Ledger\n"
        "from adaexplore.run import ledger\nfrom adaexplore.cli import app\n"
        "job = 'adaexplore.evaluate.judge.examine:job'\nfrom adaexplore.run import Ledger\n"
    )
    assert len(list(objections(source))) == 5
