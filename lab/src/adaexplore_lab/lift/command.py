"""The command that measures the lift of a memory: lift."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from itertools import takewhile
from pathlib import Path

from rich.console import Console

from adaexplore.core import (
    BadInputError,
    BadProblemError,
    BudgetSpentError,
    Config,
    Problem,
    Rule,
    TargetName,
    parse_pairs,
    parse_settings,
    write_whole,
)
from adaexplore.memory import BUNDLED, load_memory, memory_path, save_memory, technique_demands
from adaexplore.run import (
    INTERRUPTED,
    Machine,
    attempt_config,
    default_parallel,
    make_plan,
    map_parallel,
    open_clients,
    start_server,
)
from adaexplore_lab.console import say
from adaexplore_lab.lift.first_tries import FIRST_TRY, MAY_CHANGE, FirstTries, MemoryArm
from adaexplore_lab.lift.summary import Lift, TaskTries, measured, noted, source_of, to_json
from adaexplore_lab.lift.view import show

_WITHOUT = "-without-"


@dataclass(frozen=True, slots=True)
class LiftOptions:
    """Options of `adaexplore-lab lift`."""

    memory: str
    problems: Path
    model: str = ""
    tasks: int = 200
    repeats: int = 1
    against: Sequence[str] = ()
    leave_out: Sequence[str] = ()
    budget: str = ""
    work: Path | None = None
    output: Path | None = None
    json: Path | None = None
    settings: Sequence[str] = ()
    device: str | None = None
    target: TargetName | None = None
    parallel: int | None = None
    prompts: str = ""
    techniques: bool = False

    @property
    def folder(self) -> Path:
        """Folder of the tries."""
        path = Path(self.memory)
        return self.work or path.with_name(f"{path.stem}.lift")


def measure(options: LiftOptions) -> int:
    """Make the missing first tries and print the lift; return the exit code."""
    console = Console()
    sources = _sources(options)
    settings = _settings(options.settings)
    machine = Machine(options.device, options.target)
    arms = _arms(options)
    problems = _held_out(console, options, machine, [rule for arm in arms for rule in arm.rules])
    names = [problem.name for problem in problems]
    texts = technique_demands(
        [problem.source for problem in problems],
        language=machine.language,
        on_gpu=machine.target is None,
    )
    tries = FirstTries(
        options.folder,
        arms,
        settings,
        options.repeats,
        machine.platform,
        make_plan(sources),
        demands=dict(zip(names, texts, strict=True)) if options.techniques else {},
    )
    for problem in problems:
        tries.require_same(problem)
    status = _try_all(console, tries, problems, sources, options.parallel or default_parallel())
    attempted = [found for problem in problems for found in tries.attempted(problem)]
    wanted = options.repeats * sum(len(tries.arms_for(problem)) for problem in problems)
    made = sum(len(found.outcomes) for found in attempted)
    say(console, f"{made} of {wanted} first tries are judged, on {machine}")
    for line in (line for problem in problems for line in tries.spoiled(problem)):
        say(console, line)
    baseline, own, *others = arms
    lift = measured(
        attempted,
        own.rules,
        baseline=baseline.name,
        arm=own.name,
        others=[other.name for other in others if not other.without],
        without={other.without: other.name for other in others if other.without},
    )
    show(console, lift)
    _keep(console, options, lift)
    if options.json:
        _write_json(options, tries.proposer, str(machine), settings, lift, attempted)
    return status


def _sources(options: LiftOptions) -> Config:
    """Return the proposer of the tries, its prompts and the budget."""
    config = attempt_config(options.model, budget=options.budget, prompts=options.prompts)
    if config.limits.steps or config.limits.seconds:
        raise BadInputError(f"--budget {options.budget}: first tries have one in usd or tok only")
    return config


def _settings(pairs: Sequence[str]) -> Config:
    for key in parse_pairs(pairs):
        if key in Config.model_fields and key not in MAY_CHANGE:
            raise BadInputError(
                f"--set {key}: a first try has it fixed; what may change is {', '.join(MAY_CHANGE)}"
            )
    return parse_settings(pairs, FIRST_TRY)


def _arms(options: LiftOptions) -> tuple[MemoryArm, ...]:
    """No memory, the memory, what it is set against, and itself without some rules."""
    named = {"": "none"} | {memory: _name(memory) for memory in (options.memory, *options.against)}
    names = list(named.values())
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadInputError(f"two memories are called {twice[0]}: rename one's file")
    kept = options.folder / "memories"
    arms = [
        MemoryArm(name, _as_begun(memory, kept / f"{name}.toml") if memory else ())
        for memory, name in named.items()
    ]
    own = arms[1]
    for rule in options.leave_out:
        known = [one.name for one in own.rules]
        if rule not in known:
            near = get_close_matches(rule, known, n=2)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise BadInputError(f"--leave-out {rule}: {options.memory} has no such rule{hint}")
        rest = tuple(one for one in own.rules if one.name != rule)
        arms.append(MemoryArm(f"{own.name}{_WITHOUT}{rule}", rest, without=rule))
    return tuple(arms)


def _name(memory: str) -> str:
    return memory if memory == BUNDLED else Path(memory).stem


def _as_begun(memory: str, kept: Path) -> tuple[Rule, ...]:
    """A memory as it was when the first try was made; kept from then on.

    What is measured is noted in the memory, and lifts decide on prompts. Raises `BadInputError`
    where it differs by more than that now.
    """
    rules = load_memory(memory_path(memory))
    if not rules:
        raise BadInputError(f"{memory} has no rules: there is nothing to measure")
    if not kept.exists():
        _make(kept.parent)
        save_memory(kept, rules)
    begun = load_memory(kept)
    if _unmeasured(begun) != _unmeasured(rules):
        raise BadInputError(
            f"{memory} is not what it was when {kept.parent.parent} was begun; name another --work"
        )
    return tuple(begun)


def _unmeasured(rules: Sequence[Rule]) -> Mapping[str, Rule]:
    return {rule.name: replace(rule, lift=None, lift_tries=0) for rule in rules}


def _held_out(
    console: Console, options: LiftOptions, machine: Machine, rules: Sequence[Rule]
) -> list[Problem]:
    """The first tasks of the folder that no rule was learned from.

    Raises `BadInputError` where there is none.
    """
    found: list[Problem] = []
    for problem in machine.problems(options.problems, lambda line: say(console, line)):
        if learned := source_of(rules, problem):
            say(console, f"{problem.name}.py: left out: the rule {learned} was learned from it")
            continue
        found.append(problem)
        if len(found) == options.tasks:
            break
    if not found:
        raise BadInputError(
            f"{options.problems} holds no task that the rules were not learned from"
        )
    return found


def _try_all(
    console: Console, tries: FirstTries, problems: Sequence[Problem], sources: Config, parallel: int
) -> int:
    """Make missing tries until all exist, the budget is spent or Ctrl-C; return the exit code."""
    waits: list[Path] = []
    stopped = ""
    with ExitStack() as stack:
        with ExitStack() as reading:
            stores = tries.stores(problems, reading)
            clients = stack.enter_context(open_clients(sources, make_plan(sources), *stores))
        server = stack.enter_context(closing(start_server(problems[0])))
        try:
            unless_spent = takewhile(lambda _: not stopped, problems)
            for landed in map_parallel(
                unless_spent, partial(tries.attempt, server, clients), parallel
            ):
                name = landed.key.name
                match landed.error:
                    case None:
                        waits += landed.result
                        _say_how_far(console, tries, landed.key)
                    case BadProblemError() as error:
                        say(console, f"{name}: left out: {error}")
                    case BudgetSpentError() as error:
                        stopped = stopped or str(error)
                    case error:
                        raise error
        except KeyboardInterrupt:
            say(console, "stopped; the same command goes on")
            return INTERRUPTED
    if stopped:
        say(console, f"stopping: {stopped}; the same command goes on")
    if waits:
        say(
            console, f"{len(waits)} prompts wait in {tries.folder / 'asks'}: answer each ID.N.md in"
        )
        say(console, "ID.N.reply.md beside it, and run the same command again")
    return 0


def _say_how_far(console: Console, tries: FirstTries, problem: Problem) -> None:
    """A line for a task: how many tries were right, by arm."""
    counts = []
    for found in tries.attempted(problem):
        right, made = found.first(len(found.outcomes))
        if made:
            counts.append(f"{found.arm} {right}/{made}")
    if counts:
        say(console, f"{problem.name}: right: {', '.join(counts)}")


def _keep(console: Console, options: LiftOptions, lift: Lift) -> None:
    """Note the lifts in the memory, or where the options say; the package's own stays."""
    path = options.output or (None if options.memory == BUNDLED else memory_path(options.memory))
    if path and lift.rules:
        save_memory(path, noted(load_memory(memory_path(options.memory)), lift.rules))
        say(console, f"{path}: the lift of {len(lift.rules)} rules is noted")


def _write_json(
    options: LiftOptions,
    proposer: str,
    place: str,
    settings: Config,
    lift: Lift,
    attempted: Sequence[TaskTries],
) -> None:
    data = {
        "memory": options.memory,
        "model": proposer,
        "place": place,
        "repeats": options.repeats,
        "techniques": options.techniques,
        "settings": settings.model_dump(include=set(MAY_CHANGE)),
        "arms": [to_json(arm) for arm in lift.arms],
        "contrasts": [to_json(found) for found in lift.contrasts],
        "rules": [to_json(rule) for rule in lift.rules],
        "tries": [to_json(found) for found in attempted],
    }
    assert options.json
    write_whole(options.json, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"cannot make {folder}: {error.strerror}") from None
