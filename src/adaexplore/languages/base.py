"""Description of a language that kernels are written in."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from adaexplore.core.problem import Language


def _none(_: ast.Module) -> set[str]:
    return set()


@dataclass(frozen=True, slots=True)
class Technique:
    """A part of a language, as an attempt is asked for it.

    `topics` are what a task has to be about, any of them (`memory.topics.implied`); empty fits all.
    With `needs_gpu` it cannot be judged without one.
    """

    name: str
    text: str
    topics: frozenset[str] = frozenset()
    needs_gpu: bool = False


@dataclass(frozen=True, slots=True)
class CompiledLaunch:
    """A launch of a kernel that a language's own compiler made for an absent GPU.

    `cubin` and `ptx` are the kernel's machine code and assembly, also with others of one call. A
    block gets `shared_bytes` at the launch, beside the shared memory that the code declares.
    """

    kernel: str
    cubin: bytes
    ptx: str
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class Dialect:
    """Description of a language: the properties in which languages differ.

    `title` is its name in a sentence, `kernels` names its kernels in a prompt. Kernels are measured
    on NVIDIA GPUs with `on_gpu`, else on the CPU. With `offline` they can be compiled without a
    GPU: by Triton, or by the language's own compiler (`capture`); with `interpreted` they can be
    run without one too, and judged. `imports` are the packages that a candidate imports beside
    torch. `generator` is the package whose code requests the GPU on the candidate's behalf.
    `own_kernels` returns the names under which a module's kernels are launched; a name that ends
    in "*" is the beginning of one.

    Processes: `preload` (modules, or functions as "module:function") is loaded by the server that
    forks workers, `environment` is set for candidates. `lacking` names a function that returns what
    the machine lacks for the language, None if nothing. `trial` names a job that tries the language
    out, given the described environment; it returns additions to that description, or the reason
    why the language is "unusable". With `built_ahead`, extensions are built before the GPU is
    taken, within a time limit of their own. `by_compiler`: the compiler proposer writes it.
    `well_known`: models seldom fail in it, so prompts have few rules until one does.

    `capture` names a function of a target ("sm_90"), its number of multiprocessors and a receiver.
    In a process without a GPU, it makes the language's own compiler compile for the target, and
    gives every launch to the receiver, as a `CompiledLaunch`, instead of making it.

    `strategies` says how the language carries out a strategy of the catalogue
    (`propose.model.strategies`), by the strategy's name, and `since` the first GPU generation on
    which it can. `techniques` are what attempts that teach rules are asked for. `formats` holds the
    names of the language in the formats that kernels are exported to ("flashinfer",
    "sol-execbench").
    """

    name: Language
    title: str
    kernels: str
    on_gpu: bool
    offline: bool = False
    interpreted: bool = False
    imports: tuple[str, ...] = ()
    generator: str | None = None
    own_kernels: Callable[[ast.Module], set[str]] = _none
    preload: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    lacking: str | None = None
    trial: str | None = None
    built_ahead: bool = False
    capture: str | None = None
    by_compiler: bool = False
    well_known: bool = False
    strategies: Mapping[str, str] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)
    techniques: tuple[Technique, ...] = ()
    formats: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def by_triton(self) -> bool:
        """True if Triton compiles it: rules are about such languages, on a version of Triton."""
        return self.offline and self.capture is None


def decorated(tree: ast.Module, wanted: Callable[[str], bool]) -> set[str]:
    """Return the functions under a wanted decorator, such as "triton.jit", called or not."""
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any(map(wanted, map(_name, node.decorator_list)))
    }


def _name(decorator: ast.expr) -> str:
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
