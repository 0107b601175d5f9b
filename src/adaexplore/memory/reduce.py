"""Reduction of failing modules: delta debugging over the syntax tree.

`ddmin` is that of Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (IEEE
TSE 28, 2002), taken level by level down the tree as by Misherghi and Su, "HDD: Hierarchical Delta
Debugging" (ICSE 2006).
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TypeVar

from adaexplore.core.verdict.evaluation import Evaluation, Failed, Fault
from adaexplore.memory.cuts import STATEMENTS, Cut, parameters, simpler, unwrapped

_ALIKE = 0.5
T = TypeVar("T")
_Hunk = tuple[int, int, int, int]
"""Lines of one text, first and beyond the last, and those of another that stand there instead."""

Fails = Callable[[str], bool]
"""Whether a source still fails as it should."""

_LISTS = ("decorator_list", "names", "keywords", "args", "elts")
_CHANGES_WITH_CUTS = re.compile(r"<[^<>]*>|\d[\d., x]*|\[[^\[\]]*\]")
_NO_MEANING = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)


@dataclass(frozen=True, slots=True)
class ProgramSize:
    """Nodes of the syntax tree, and lines that are neither blank nor comments."""

    nodes: int
    lines: int


@dataclass(frozen=True, slots=True)
class Reduced:
    """A module as small as it got, and what that took."""

    source: str
    before: ProgramSize
    after: ProgramSize
    evaluations: int


def reduced(
    source: str,
    fails: Fails,
    *,
    whole_statements: bool = False,
    most_evaluations: int = 250,
    most_s: float = 120.0,
    clock: Callable[[], float] = time.monotonic,
) -> Reduced:
    """The source with whatever can be cut while `fails` holds; it still defines `ModelNew`.

    With `whole_statements`, expressions stay as they are. Deterministic up to the two bounds: the
    same source and verdicts give the same result. A source that fails no longer once it is parsed
    and written again stays as it is. Raises `ValueError` for a source that does not parse.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"the module does not parse: {error}") from None
    before = size(source)
    work = _Reduction(tree, fails, most_evaluations, clock() + most_s, clock)
    if work.fails():
        work.run(whole_statements)
        source = work.text()
    return Reduced(source, before, size(source), work.evaluations)


def recurs(failed: Failed, after: Evaluation) -> bool:
    """Return True if a reduced module still fails as the original did.

    Stricter than two signatures that are alike: a cut may trade one cause for another. An exception
    is raised in the same function and says the same, but for numbers and types; an output is wrong
    at the same element by the same numbers.
    """
    if not isinstance(after, Failed) or after.status != failed.status:
        return False
    match failed.feedback, after.feedback:
        case Fault() as old, Fault() as new:
            return (old.type, old.frame, _words(old)) == (new.type, new.frame, _words(new))
    return failed.feedback is not None and failed.feedback == after.feedback


def isolated(witness: str, remedy: str, fails: Fails) -> str:
    """The remedy with as few of the witness's lines in it as make it fail.

    What is left differs from the remedy in the fault alone. It is the witness itself where nothing
    less fails.
    """
    right, wrong = remedy.splitlines(keepends=True), witness.splitlines(keepends=True)
    hunks = list(_hunks(right, wrong))

    def text(kept: Sequence[_Hunk]) -> str:
        lines, at = [], 0
        for start, end, first, last in kept:
            lines += [*right[at:start], *wrong[first:last]]
            at = end
        return "".join([*lines, *right[at:]])

    def still(kept: Sequence[_Hunk]) -> bool:
        return bool(kept) and _parses(text(kept)) and fails(text(kept))

    alone = next(([hunk] for hunk in hunks if still([hunk])), None)
    return text(alone or ddmin(hunks, still))  # which never tries one without its neighbours


def ddmin(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """A subsequence that fails and of which no single item can be left out.

    `items` is taken to fail. Later items go first: what comes before seldom needs them.
    """
    kept, parts = list(items), 2
    if not kept or fails([]):
        return []
    while len(kept) > 1:
        parts = min(parts, len(kept))
        for part in reversed(range(parts)):
            first, last = len(kept) * part // parts, len(kept) * (part + 1) // parts
            rest = kept[:first] + kept[last:]
            if fails(rest):
                kept, parts = rest, max(parts - 1, 2)
                break
        else:
            if parts == len(kept):
                break
            parts *= 2
    return kept


def size(source: str) -> ProgramSize:
    """The size of a source that parses."""
    nodes = [n for n in ast.walk(ast.parse(source)) if not isinstance(n, _NO_MEANING)]
    lines = [line for line in source.splitlines() if line.strip() and line.lstrip()[0] != "#"]
    return ProgramSize(len(nodes), len(lines))


class _Reduction:
    """One reduction: the tree is changed in place, and changed back where it fails no longer."""

    def __init__(
        self,
        tree: ast.Module,
        fails: Fails,
        most_evaluations: int,
        deadline: float,
        clock: Callable[[], float],
    ) -> None:
        self._tree = tree
        self._fails = fails
        self._most = most_evaluations
        self._deadline = deadline
        self._clock = clock
        self._known: dict[str, bool] = {}
        self._unbound = _unbound(self.text())
        self.evaluations = 0

    def run(self, whole_statements: bool) -> None:
        """Cut until nothing more can be cut, or a bound is reached."""
        before = ""
        while before != self.text():
            before = self.text()
            self._shorten(*STATEMENTS)
            self._try(cuts for node in _top_down(self._tree) for cuts in unwrapped(node))
            self._try(parameters(self._tree))
            if not whole_statements:
                self._shorten(*_LISTS)
                self._try(cuts for node in _top_down(self._tree) for cuts in simpler(node))

    def text(self) -> str:
        """The source of the tree as it stands."""
        return ast.unparse(ast.fix_missing_locations(self._tree)) + "\n"

    def fails(self) -> bool:
        """Return True if the current tree is a module that fails; False once a bound is reached.

        A module with a name that nothing binds any more fails by that: it is not evaluated.
        """
        if self.evaluations >= self._most or self._clock() >= self._deadline:
            return False
        text = self.text()
        if text not in self._known:
            whole = _parses(text) and "ModelNew" in _classes(self._tree)
            whole = whole and _unbound(text) <= self._unbound
            self.evaluations += whole
            self._known[text] = whole and self._fails(text)
        return self._known[text]

    def _shorten(self, *fields: str) -> None:
        """Cut the lists of these names as short as they go, the outermost first."""
        for node in _top_down(self._tree):
            for field in fields:
                items = getattr(node, field, None)
                if isinstance(items, list) and items and not isinstance(node, ast.arguments):
                    self._shorten_one(node, field, items)

    def _shorten_one(self, node: ast.AST, field: str, items: list[ast.AST]) -> None:
        needs_one = field == "body" and not isinstance(node, ast.Module)
        nothing: list[ast.AST] = [ast.Pass()] if needs_one else []
        if needs_one and [type(item) for item in items] == [ast.Pass]:
            return

        def still(kept: Sequence[ast.AST]) -> bool:
            setattr(node, field, list(kept) or nothing)
            return self.fails()

        kept = ddmin(items, still)
        setattr(node, field, kept or nothing)

    def _try(self, choices: Iterable[Iterable[Cut]]) -> None:
        """Makes of each choice the first cut that leaves the module failing."""
        for cuts in choices:
            for cut in cuts:
                undo = cut()
                if self.fails():
                    break
                undo()


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[_Hunk]:
    """Yield the hunks that differ: replaced lines that are alike, and lines added or removed."""
    for tag, start, end, first, last in SequenceMatcher(None, old, new, False).get_opcodes():
        if tag == "equal":
            continue
        i, j = start, first
        for a, b in _alike(old[start:end], new[first:last]):
            yield from _apart(i, start + a, j, first + b)
            yield start + a, start + a + 1, first + b, first + b + 1
            i, j = start + a + 1, first + b + 1
        yield from _apart(i, end, j, last)


def _apart(start: int, end: int, first: int, last: int) -> Iterator[_Hunk]:
    """Lines of which none is like another: in place of each other as they come, the rest alone."""
    pairs = min(end - start, last - first)
    yield from ((start + i, start + i + 1, first + i, first + i + 1) for i in range(pairs))
    yield from ((i, i + 1, last, last) for i in range(start + pairs, end))
    yield from ((end, end, j, j + 1) for j in range(first + pairs, last))


def _alike(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of lines, in order, that are alike the most in all (Needleman and Wunsch 1970)."""
    best: dict[tuple[int, int], tuple[float, list[tuple[int, int]]]] = {}
    for i in reversed(range(len(old) + 1)):
        for j in reversed(range(len(new) + 1)):
            ways = [best[there] for there in ((i + 1, j), (i, j + 1)) if there in best]
            if i < len(old) and j < len(new):
                likeness = SequenceMatcher(None, old[i].strip(), new[j].strip(), False).ratio()
                if likeness > _ALIKE:
                    so_far, pairs = best[i + 1, j + 1]
                    ways.append((likeness + so_far, [(i, j), *pairs]))
            best[i, j] = max(ways, key=lambda way: way[0], default=(0.0, []))
    return best[0, 0][1]


def _top_down(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node, the outer before the inner, as the tree is when its turn comes."""
    pending = deque([tree])
    while pending:
        node = pending.popleft()
        yield node
        pending.extend(ast.iter_child_nodes(node))


def _classes(tree: ast.Module) -> set[str]:
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


def _unbound(source: str) -> set[tuple[str, str]]:
    """Return the names that nothing binds, each with the scope that reads it."""
    tables = [symtable.symtable(source, "<reduced>", "exec")]
    bound = {*vars(builtins), *(s.get_name() for s in tables[0].get_symbols() if _binds(s))}
    found: set[tuple[str, str]] = set()
    for table in tables:
        tables += table.get_children()
        names = {s.get_name() for s in table.get_symbols() if s.is_global()}
        found |= {(name, table.get_name()) for name in names - bound}
    return found


def _binds(symbol: symtable.Symbol) -> bool:
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


def _words(fault: Fault) -> str:
    return " ".join(_CHANGES_WITH_CUTS.sub("…", fault.message).split())


def _parses(source: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `0(x)` is what it looks like
            compile(source, "<reduced>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True
