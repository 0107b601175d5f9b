"""Package roots: the names that they export, and what importing them costs."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import adaexplore

ROOTS = [
    f"adaexplore.{path.parent.name}"
    for path in Path(adaexplore.__file__).parent.glob("*/__init__.py")
]
LAZY = [
    name
    for name in ROOTS
    if "lazy_names" in Path(importlib.import_module(name).__file__).read_text()
]


@pytest.mark.parametrize(
    "root", [name for name in ROOTS if "__all__" in vars(importlib.import_module(name))]
)
def test_every_public_name_is_there_and_no_submodule(root):
    package = importlib.import_module(root)
    for name in package.__all__:
        assert not isinstance(getattr(package, name), ModuleType)


@pytest.mark.parametrize("root", LAZY)
def test_the_type_checker_sees_the_names_of_run_time(root):
    package = importlib.import_module(root)
    tree = ast.parse(Path(package.__file__).read_text())
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.name for node in block.body for alias in node.names}
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert seen == set(package.__all__) - own


def test_a_name_that_is_missing_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = importlib.import_module("adaexplore.core").nothing


def test_importing_lazy_roots_loads_no_torch():
    code = f"import sys, {', '.join(LAZY)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
