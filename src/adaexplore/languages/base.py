"""What differs between the languages that kernels are written in."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from adaexplore.core.problem import Language


def _none(_: ast.Module) -> set[str]:
    return set()


@dataclass(frozen=True, slots=True)
class Dialect:
    """A language, as far as others have to tell it from its siblings.

    `title` is its name in a sentence, `kernels` says in a prompt what is written. With `on_gpu` it
    is measured on NVIDIA GPUs, else on the CPU; with `offline` Triton kernels come of it, which are
    judged without a GPU too. `imports` are the packages that a candidate imports beside torch,
    `generator` the one whose code asks for the GPU on the candidate's behalf. `own_kernels` gives
    the names under which a module's kernels are launched.

    Processes: `preload` (modules, or functions as "module:function") goes into the server that
    workers are forked from, `environment` to candidates. `lacking` names a function that says what
    the machine lacks for it, None if nothing; `trial` a job that tries it out: it gets
    "compute_capability" and returns "versions" (fields of `Environment`) and "unusable", the
    reason why it does not work or "". With
    `built_ahead` its extensions are built before the GPU is taken, in a time limit of their own.
    `by_compiler`: the compiler proposer writes it.
    """

    name: Language
    title: str
    kernels: str
    on_gpu: bool
    offline: bool = False
    imports: tuple[str, ...] = ()
    generator: str | None = None
    own_kernels: Callable[[ast.Module], set[str]] = _none
    preload: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    lacking: str | None = None
    trial: str | None = None
    built_ahead: bool = False
    by_compiler: bool = False


def decorated(tree: ast.Module, wanted: Callable[[str], bool]) -> set[str]:
    """Functions under a decorator of a name that is wanted, such as "triton.jit", called or not."""
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any(map(wanted, map(_name, node.decorator_list)))
    }


def _name(decorator: ast.expr) -> str:
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
