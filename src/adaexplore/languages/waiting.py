"""Kernels whose blocks wait for other blocks of the same launch, found in a candidate's source.

Such a kernel (a barrier over the grid, a scan that looks back and spins on flags) hangs where not
all of its blocks run at once: on a smaller GPU, or beside another program's kernels. A cooperative
launch starts all of them or fails. A spin lock is none of these: its holder runs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from adaexplore.languages.cuda import DIALECT as CUDA
from adaexplore.languages.fingerprint import without_comments
from adaexplore.languages.triton import DIALECT as TRITON

_COOPERATIVE = "launch_cooperative_grid"
_READS = ("atomic_add", "atomic_or", "atomic_xor", "atomic_max")  # of 0 change nothing
_READ_BY_ASSEMBLY = re.compile(r"\b(?:ld\.(?:acquire|volatile|relaxed)|ld\.global\.cv|atom\.)")

_READ_IN_CUDA = re.compile(
    r"\batomic(?:Add|Or|Xor|Max)\w*\s*\([^;]*,\s*0(?:u|U|ull|ULL|\.0f?)?\s*\)"
    r"|\b__ld(?:cv|cg)\s*\(|\bld(?:\.|_)acquire|\bld\.(?:volatile|relaxed)"
    r"|\bvolatile\b|(?:\.|->)load\s*\("
)
_COMPARED_IN_CUDA = re.compile(r"\batomicCAS\w*\s*\(([^;]*)\)")
_VOLATILE_NAME = re.compile(r"\bvolatile\b[^;,(){}=]*?[\s*&](\w+)\s*(?=[;,)=\[])")
_LOOP = re.compile(r"\b(while|for)\s*\(")
_FUNCTION = re.compile(r"\b(\w+)\s*\([^;{}]*\)\s*\{")
_GRID_SYNC = re.compile(r"\bthis_grid\s*\(\s*\)|\bgrid_group\b")
_COOPERATIVE_IN_CUDA = re.compile(r"\bcu(?:da)?LaunchCooperativeKernel\b|AttributeCooperative\b")
_Node = TypeVar("_Node", bound=ast.AST)
_KEYWORDS = frozenset({"if", "for", "while", "switch", "return", "sizeof"})


def waiting_kernels(source: str) -> tuple[str, ...]:
    """Name the kernels of a module that wait for other blocks and are not launched cooperatively.

    Kernels in Triton, and in the CUDA C++ of the module's strings; none for text that is no Python.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ()
    return (*_in_triton(tree), *_in_cuda(tree))


def _in_triton(tree: ast.Module) -> Iterator[str]:
    jitted = TRITON.own_kernels(tree)
    functions = {
        node.name: node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name in jitted
    }
    calls = {name: set(map(_called, _of(node, ast.Call))) for name, node in functions.items()}
    waiting = {name for name, node in functions.items() if any(map(_waits, _of(node, ast.While)))}
    for name in sorted(_with_callers(waiting, calls)):
        launches = [
            call
            for call in _of(tree, ast.Call)
            if isinstance(call.func, ast.Subscript) and _name(call.func.value) == name
        ]
        is_helper = any(name in called for called in calls.values())
        if not (launches and all(map(_is_cooperative, launches))) and (launches or not is_helper):
            yield name


def _is_cooperative(launch: ast.Call) -> bool:
    return any(
        keyword.arg == _COOPERATIVE
        and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
        for keyword in launch.keywords
    )


def _waits(loop: ast.While) -> bool:
    """Return True if the loop goes on until a value in memory changes that it does not change."""
    changed = {node.id for node in _of(loop, ast.Name) if isinstance(node.ctx, ast.Store)}
    names = _names(loop.test)
    asked = [s.value for s in _of(loop, ast.Assign) if _names(*s.targets) & names] + [loop.test]
    return any(_is_read(call, changed) for part in asked for call in _of(part, ast.Call))


def _is_read(call: ast.Call, changed: set[str]) -> bool:
    """Return True for a call that may give another value when other blocks have run."""
    name, values = _called(call), [*call.args[1:], *(k.value for k in call.keywords)]
    if name in _READS:
        return any(_is_zero(value) for value in values)
    if name == "atomic_cas":
        compared, new = [*call.args[1:3], *(k.value for k in call.keywords)][:2]
        is_lock = _is_zero(compared) and not _is_zero(new)
        return not is_lock and not _names(compared, new) & changed
    if name == "load":
        fresh = any(
            (k.arg == "volatile" and not _is_zero(k.value))
            or (k.arg == "cache_modifier" and _text(k.value) == ".cv")
            for k in call.keywords
        )
        return fresh or not _names(*call.args[:1]) & changed
    if name == "inline_asm_elementwise":
        return any(_READ_BY_ASSEMBLY.search(_text(each) or "") for each in ast.walk(call))
    return False


def _in_cuda(tree: ast.Module) -> Iterator[str]:
    kernels = CUDA.own_kernels(tree)
    if not kernels:
        return
    texts = (node.value for node in _of(tree, ast.Constant) if isinstance(node.value, str))
    text = "\n".join(without_comments(each) for each in texts)
    bodies = dict(_functions(text))
    volatile = set(_VOLATILE_NAME.findall(text))
    calls = {name: set(re.findall(r"\b(\w+)\s*\(", body)) for name, body in bodies.items()}
    waiting = {name for name, body in bodies.items() if _waits_in_cuda(body, volatile)}
    cooperative = bool(_COOPERATIVE_IN_CUDA.search(text))
    for name in sorted(_with_callers(waiting, calls) & kernels):
        if not cooperative or re.search(rf"\b{name}\s*(?:<[^;<>()]*>\s*)?<<<", text):
            yield name


def _waits_in_cuda(body: str, volatile: set[str]) -> bool:
    if _GRID_SYNC.search(body) and re.search(r"\bsync\s*\(", body):
        return True
    return any(_spins(*loop, volatile) for loop in _loops(body))


def _spins(condition: str, body: str, volatile: set[str]) -> bool:
    """Return True if a loop's condition, or a value that it asks for, is read from memory anew."""
    asked = [condition]
    names = set(re.findall(r"\b[A-Za-z_]\w*\b", condition))
    for name, value in re.findall(r"\b(\w+)\s*=(?!=)\s*([^;]*);", body):
        if name in names:
            asked.append(value)
    if condition.strip() in ("", "true", "1") and re.search(r"\bbreak\b", body):
        asked += re.findall(r"\bif\s*\((.*?)\)\s*\{?\s*break", body, re.DOTALL)
    return any(_is_read_in_cuda(each, volatile) for each in asked)


def _is_read_in_cuda(text: str, volatile: set[str]) -> bool:
    if _READ_IN_CUDA.search(text) or volatile & set(re.findall(r"\b\w+\b", text)):
        return True
    for arguments in _COMPARED_IN_CUDA.findall(text):
        *_, compared, new = (part.strip() for part in ["", "", *arguments.split(",")])
        if compared.isdigit() and new.isdigit() and not (compared == "0" != new):
            return True
    return False


def _loops(text: str) -> Iterator[tuple[str, str]]:
    """Yield the condition and the body of each loop; of `do ... while` what stands before it."""
    for found in _LOOP.finditer(text):
        end = _closing(text, found.end() - 1)
        condition = text[found.end() : end]
        if found[1] == "for":
            parts = condition.split(";")
            condition = parts[1] if len(parts) == 3 else ""
        rest = text[end + 1 :].lstrip()
        if rest.startswith("{"):
            yield condition, rest[: _closing(rest, 0)]
        elif (
            found[1] == "while"
            and rest.startswith(";")
            and text[: found.start()].rstrip()[-1:] == "}"
        ):
            yield condition, text[text.rfind("do", 0, found.start()) : found.start()]
        else:
            yield condition, rest.partition(";")[0] + ";"


def _functions(text: str) -> Iterator[tuple[str, str]]:
    for found in _FUNCTION.finditer(text):
        if found[1] not in _KEYWORDS:
            yield found[1], text[found.end() : _closing(text, found.end() - 1)]


def _closing(text: str, opening: int) -> int:
    """Return the place of the bracket that closes the one at `opening`."""
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] in "({") - (text[place] in ")}")
        if depth == 0:
            return place
    return len(text)


def _with_callers(names: Iterable[str], calls: Mapping[str, set[str]]) -> set[str]:
    """Return the functions, and all that call one of them."""
    found = set(names)
    while more := {name for name, called in calls.items() if called & found} - found:
        found |= more
    return found


def _of(tree: ast.AST, kind: type[_Node]) -> list[_Node]:
    return [node for node in ast.walk(tree) if isinstance(node, kind)]


def _names(*nodes: ast.AST) -> set[str]:
    return {name.id for node in nodes for name in _of(node, ast.Name)}


def _called(call: ast.Call) -> str:
    return _name(call.func)


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _text(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _is_zero(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and not node.value and node.value is not None
