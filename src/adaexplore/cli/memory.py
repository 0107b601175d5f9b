"""Commands on memories: adapt --probe; memory list, show, check, diff, export, import."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.syntax import Syntax
from rich.table import Table

from adaexplore import adapt
from adaexplore.cli.session import PRELOAD, PRELOAD_OFFLINE, device_of, target_of
from adaexplore.errors import BadInputError
from adaexplore.evaluate.base import Evaluator
from adaexplore.evaluate.local import LocalEvaluator
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.memory.check import Checker
from adaexplore.memory.files import load, save
from adaexplore.memory.merge import difference, merged
from adaexplore.problem import Problem, TargetName
from adaexplore.rule import Rule, Where
from adaexplore.sandbox.process import ForkServer

_TIMEOUT_S = 120.0
_MEMORY_BYTES = 4 << 30


def probe(output: Path, device: str | None, target: TargetName | None) -> int:
    """Tries every probe here and writes the rules that hold; the exit code."""
    from adaexplore.memory.probes import PROBES

    console = Console()
    known = load(output) if output.exists() else []
    with _checker(device, target) as checker, _telling(console, len(PROBES)) as tell:
        found = adapt.probe(PROBES, checker, tell)
    save(output, merged(known, found))
    where = f"Triton {checker.where.triton}, {checker.where.target}"
    console.print(f"{len(found)} of {len(PROBES)} probes are rules on {where}: {output}")
    return 0


def check(memory: Path, output: Path | None, device: str | None, target: TargetName | None) -> int:
    """Runs every witness and remedy here; the exit code: 1 if a rule does not hold.

    What was seen is written to the memory itself, or to `output`.
    """
    console = Console()
    rules = load(memory)
    with _checker(device, target) as checker, _telling(console, len(rules)) as tell:
        checked = adapt.check(rules, checker, tell)
    true = sum(one.true for one in checked)
    save(output or memory, [one.rule for one in checked])
    console.print(
        f"{true} of {len(rules)} rules hold on Triton {checker.where.triton}, "
        f"{checker.where.target}"
    )
    return 0 if true == len(rules) else 1


def show_all(memory: Path) -> int:
    """Prints a line for each rule; the exit code."""
    table = Table("rule", "kind", "holds on", "support", "statement", box=None)
    rules = load(memory)
    for rule in rules:
        places = ", ".join(sorted({w.triton for w in rule.holds})) or "nowhere"
        table.add_row(rule.name, rule.kind, places, str(rule.support), rule.statement)
    console = Console()
    console.print(table)
    console.print(f"{len(rules)} rules", highlight=False)
    return 0


def show(memory: Path, name: str) -> int:
    """Prints one rule with its programs; the exit code."""
    console = Console()
    rules = {rule.name: rule for rule in load(memory)}
    if name not in rules:
        near = [known for known in rules if name in known][:3]
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise BadInputError(f"{memory} has no rule {name!r}{hint}")
    rule = rules[name]
    console.print(f"{rule.name} ({rule.kind})\n{rule.statement}", highlight=False, markup=False)
    for label, places in (("holds on", rule.holds), ("gone on", rule.gone)):
        if places:
            text = ", ".join(f"Triton {w.triton} ({w.target})" for w in places)
            console.print(f"{label}: {text}", highlight=False, markup=False)
    signature = rule.signature
    failure = " ".join(filter(None, [signature.status, signature.type, signature.message]))
    console.print(f"fails with: {failure}", highlight=False, markup=False)
    for title in ("reference", "witness", "remedy"):
        console.rule(title)
        console.print(Syntax(getattr(rule, title), "python"))
    return 0


def diff(old: Path, new: Path) -> int:
    """Prints what two memories differ in; the exit code: 1 if in anything."""
    console = Console()
    found = difference(load(old), load(new))
    for mark, names in (("+", found.added), ("-", found.removed), ("~", found.changed)):
        for name in names:
            console.print(f"{mark} {name}", highlight=False, markup=False)
    counts = f"{len(found.added)} added, {len(found.removed)} removed, {len(found.changed)} changed"
    console.print(counts, highlight=False)
    return 1 if found.added or found.removed or found.changed else 0


def combine(memories: Sequence[Path], output: Path) -> int:
    """Writes several memories as one; the exit code."""
    rules = merged(*map(load, memories))
    save(output, rules)
    Console().print(f"{output}: {len(rules)} rules", highlight=False)
    return 0


@contextmanager
def _checker(device: str | None, target: TargetName | None) -> Iterator[Checker]:
    """A checker for the installed Triton, on a GPU if there is one or else for a target."""
    if find_spec("triton") is None:
        raise BadInputError("Triton is not installed: pip install triton")
    where = device_of("cpu" if device is None and target else device)
    on = target_of(target, where, "triton")
    server = ForkServer.start(PRELOAD_OFFLINE if on else PRELOAD)
    kind = OfflineEvaluator if on else LocalEvaluator

    def judge(name: str, source: str) -> Evaluator:
        problem = Problem(name, source, "triton", where, target=on)
        return kind(server, problem, timeout_s=_TIMEOUT_S, memory_bytes=_MEMORY_BYTES)

    checker = Checker(judge, Where(version("triton"), on or _capability(where)))
    try:
        yield checker
    finally:
        checker.close()
        server.close()


def _capability(device: str) -> str:
    """The target's name of a GPU."""
    import torch

    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"


@contextmanager
def _telling(console: Console, total: int) -> Iterator[Callable[[Rule, str], None]]:
    """A progress bar, and a line for each rule that does not hold."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("checking", total=total)

        def tell(rule: Rule, why: str) -> None:
            progress.advance(task)
            if why:
                console.print(f"{rule.name}: {why}", highlight=False, markup=False, soft_wrap=True)

        yield tell
