"""The Gluon experiment: rules learned from failures, and first tries with and without them.

    python lab/benchmarks/gluon/gluon_lift.py learn WORK
    python lab/benchmarks/gluon/gluon_lift.py prompts WORK
    python lab/benchmarks/gluon/gluon_lift.py judge WORK -o docs/results/gluon-lift.json

Each command runs on the Triton that is installed, without a GPU, for sm_90; what is measured is
defined in docs/results/gluon-lift.md. Prompts `NAME.prompt.md` wait for `NAME.reply.md` beside
them, and the same command takes the replies and goes on:

- `learn` draws the tasks and writes the prompts of the first tries to WORK/learn. From the replies
  it makes cases, whose prompts are there too, and from the answers to those the rules of
  WORK/learned.toml.
- `prompts` writes the prompts of the held-out tasks to a folder for each arm in WORK/held-out,
  called a, b and c; WORK/arms.json names them.
- `judge` compiles the replies, prints the failures of each arm and the tests, and writes them. With
  `--blocks N`, where task i of the held-out ones is in block i modulo N and each block and arm had
  an answerer of its own, it also tests the differences of the blocks.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

from gluon_tasks import SEED, write_tasks

from adaexplore.core import BadInputError, Config, Problem, Rule, TargetName
from adaexplore.memory import BUNDLED, load_memory, memory_path, technique_demands
from adaexplore.run import (
    Machine,
    attempt_config,
    default_parallel,
    make_plan,
    map_parallel,
    start_server,
)
from adaexplore_lab.lift.first_tries import FIRST_TRY, FirstTries, MemoryArm
from adaexplore_lab.lift.summary import (
    RIGHT,
    ArmResult,
    Contrast,
    TaskTries,
    arm_result,
    contrast,
    source_of,
    to_json,
)

TARGET: TargetName = "sm_90"
NONE, LEARNED, TRITON = "none", "learned", "triton"
PAIRS = ((LEARNED, NONE), (LEARNED, TRITON), (TRITON, NONE))
"""The primary contrast first."""

HARD = (
    "left operand in registers",
    "transposed operand",
    "stores under way",
    "asynchronous wgmma",
    "swizzled exchange",
    "tma pipeline",
    "blocks of three dimensions",
    "persistent programs",
    "scan",
)
"""The techniques at which first tries of the learning tasks failed."""

_PROMPTS = Path(__file__).parent / "prompts"
_CHECKED = Config(require_custom=True)
_COMPILES = "not_run"
_IGNORES = "ignores its technique"
_TRY = re.compile(r"1\.1(?=\.)")
"""The number of a first try's only prompt, which its flat name leaves out."""


@dataclass(frozen=True, slots=True)
class Work:
    """The folder of the experiment."""

    path: Path

    @property
    def tasks(self) -> Path:
        """The folders of the tasks."""
        return self.path / "tasks"

    @property
    def memory(self) -> Path:
        """The learned memory."""
        return self.path / "learned.toml"

    @property
    def learning(self) -> Path:
        """The folder of `adaexplore adapt`."""
        return self.path / "learning"


def learn(work: Work) -> int:
    """Make the attempts and the rules as far as there are replies; return the exit code."""
    write_tasks(work.tasks)
    flat = work.path / "learn"
    take_in(flat, work.learning)
    command = [sys.executable, "-m", "adaexplore", "adapt", "--language", "gluon"]
    command += ["--problems", str(work.tasks / "learn"), "--target", TARGET, "--steps", "1"]
    command += ["--prompts", str(_PROMPTS), "--set", "require_custom=true"]
    command += ["-o", str(work.memory), "--work", str(work.learning)]
    status = subprocess.run(command, check=False).returncode
    hand_out(work.learning, flat)
    return status


def hand_out(asks: Path, flat: Path) -> None:
    """Copy each prompt of `asks` that has no reply to `flat`."""
    flat.mkdir(parents=True, exist_ok=True)
    for prompt in _prompts(asks):
        if not _reply_to(prompt).exists():
            shutil.copyfile(prompt, flat / f"{_flat_name(prompt, asks)}.prompt.md")


def take_in(flat: Path, asks: Path) -> None:
    """Copy each reply of `flat` to its prompt in `asks`, unless it has one."""
    for prompt in _prompts(asks):
        reply = flat / f"{_flat_name(prompt, asks)}.reply.md"
        if reply.exists() and not _reply_to(prompt).exists():
            shutil.copyfile(reply, _reply_to(prompt))


def _prompts(asks: Path) -> Iterator[Path]:
    for path in sorted(asks.rglob("*.md")):
        if not path.name.endswith(".reply.md"):
            yield path


def _reply_to(prompt: Path) -> Path:
    return prompt.with_name(f"{prompt.stem}.reply.md")


def _flat_name(prompt: Path, asks: Path) -> str:
    """Return the name of a prompt without folders: a task's number, or rule-CASE.TURN."""
    folder = prompt.relative_to(asks).parent.name
    if folder == "rules":
        return f"rule-{prompt.stem}"
    return folder if _TRY.match(prompt.name) else f"{folder}-{prompt.stem}"


def tries_of(work: Work, machine: Machine) -> tuple[FirstTries, list[Problem]]:
    """Return the first tries of all arms, and the held-out tasks.

    Raises `BadInputError` without a learned memory, and where a rule comes from a held-out task.
    """
    if not work.memory.exists():
        raise BadInputError(f"{work.memory} is missing: learn first")
    rules = load_memory(work.memory)
    problems = list(machine.problems(work.tasks / "held-out", print, checked=_CHECKED))
    for problem in problems:
        if rule := source_of(rules, problem):
            raise BadInputError(f"{work.memory}: the rule {rule} comes from {problem.name}")
    sources = attempt_config("", prompts=str(_PROMPTS))
    demands = demands_of([p.source for p in problems])
    tries = FirstTries(
        work.path / "tries",
        _arms(rules),
        FIRST_TRY,
        1,
        machine.platform,
        make_plan(sources),
        demands=dict(zip([p.name for p in problems], demands, strict=True)),
    )
    return tries, problems


def demands_of(references: Sequence[str]) -> list[str]:
    """Return the demands of held-out tasks: two techniques each, the second one of `HARD`."""
    first = technique_demands(references, language="gluon", on_gpu=False)
    second = technique_demands(references, language="gluon", on_gpu=False, only=HARD, beside=first)
    return [f"{one} And this: {two}" for one, two in zip(first, second, strict=True)]


def _arms(learned: Sequence[Rule]) -> tuple[MemoryArm, ...]:
    """Return the arms; the rules about Triton are told as if they were about Gluon."""
    bundled = load_memory(memory_path(BUNDLED))
    told = tuple(replace(rule, language="gluon") for rule in bundled)
    return MemoryArm(NONE), MemoryArm(LEARNED, tuple(learned)), MemoryArm(TRITON, told)


def go_on(work: Work, tries: FirstTries, problems: Sequence[Problem]) -> None:
    """Judge the replies and write the missing prompts."""
    letters = _letters(work)
    for arm, letter in letters.items():
        take_in(work.path / "held-out" / letter, tries.folder / "asks" / arm)
    with closing(start_server(problems[0])) as server:
        attempt = partial(tries.attempt, server, {})
        for landed in map_parallel(problems, attempt, default_parallel()):
            if landed.error:
                raise landed.error
    for arm, letter in letters.items():
        hand_out(tries.folder / "asks" / arm, work.path / "held-out" / letter)


def _letters(work: Work) -> dict[str, str]:
    """Return a letter for each arm, drawn once, so that folders do not tell the arms."""
    arms = [NONE, LEARNED, TRITON]
    letters = dict(zip(random.Random(SEED).sample(arms, len(arms)), "abc", strict=True))
    (work.path / "arms.json").write_text(json.dumps(letters) + "\n")
    return letters


def ignored(tries: FirstTries) -> set[tuple[str, str]]:
    """Return the tries, by task and arm, whose reply misses a name that the demand has in code."""
    found = set()
    for arm in tries.arms:
        for task, demand in tries.demands.items():
            reply = tries.folder / "asks" / arm.name / task / "1.1.reply.md"
            text = reply.read_text(errors="replace") if reply.exists() else ""
            names = re.findall(r"`([\w.]+)`", demand)
            if not all(re.search(rf"\b{re.escape(name)}\b", text) for name in names):
                found.add((task, arm.name))
    return found


def compared(
    attempted: Sequence[TaskTries], refused: Container[tuple[str, str]] = ()
) -> tuple[list[ArmResult], list[Contrast]]:
    """Return the arms and their contrasts, where a try that compiles counts as no failure.

    Nothing is known of its results: that it compiles is all that is counted here. Of the tries in
    `refused`, by task and arm, those that compile count as failures.
    """

    def outcome(found: TaskTries, one: str) -> str:
        if one != _COMPILES:
            return one
        return _IGNORES if (found.task, found.arm) in refused else RIGHT

    counted = [
        replace(found, outcomes=tuple(outcome(found, one) for one in found.outcomes))
        for found in attempted
    ]
    arms = (arm_result(arm, counted, NONE) for arm in (NONE, LEARNED, TRITON))
    contrasts = (contrast(arm, against, counted) for arm, against in PAIRS)
    return [arm for arm in arms if arm], [found for found in contrasts if found]


def block_differences(attempted: Sequence[TaskTries], blocks: int) -> list[int]:
    """Return the failures without rules minus those with learned ones, in each complete block."""
    tasks = sorted({found.task for found in attempted})
    failed = {
        (found.task, found.arm): found.outcomes[0] != _COMPILES
        for found in attempted
        if found.outcomes
    }
    found = []
    for number in range(blocks):
        mine = tasks[number::blocks]
        if all((task, arm) in failed for task in mine for arm in (NONE, LEARNED)):
            found.append(sum(failed[t, NONE] - failed[t, LEARNED] for t in mine))
    return found


def sign_flip_p(differences: Sequence[int]) -> float:
    """Return the exact two-sided p-value of a sum, over all choices of signs."""
    total = abs(sum(differences))
    sums = [abs(sum(signs)) for signs in product(*((d, -d) for d in differences))]
    return sum(one >= total for one in sums) / len(sums)


def report(
    attempted: Sequence[TaskTries],
    refused: Container[tuple[str, str]],
    place: str,
    output: Path | None,
    blocks: int = 0,
) -> None:
    """Print the failures of each arm and the contrasts, and write all to a file."""
    primary = compared(attempted)
    _print(*primary)
    print("Where a reply that names no part of its technique fails too:")
    strict = compared(attempted, refused)
    _print(*strict)
    data: dict[str, object] = {"place": place}
    if blocks:
        differences = block_differences(attempted, blocks)
        p = sign_flip_p(differences)
        print(f"{NONE} minus {LEARNED} in {len(differences)} blocks: {differences}, p = {p:.2g}")
        data["blocks"] = {"differences": differences, "p_value": p}
    if output:
        for name, (arms, contrasts) in (("primary", primary), ("strict", strict)):
            data[name] = {
                "arms": [to_json(one) | {"failed": one.tries - one.right} for one in arms],
                "contrasts": [to_json(one) for one in contrasts],
            }
        data["tries"] = [
            to_json(one) | {"ignores": (one.task, one.arm) in refused} for one in attempted
        ]
        output.write_text(json.dumps(data, indent=1) + "\n")


def _print(arms: Iterable[ArmResult], contrasts: Iterable[Contrast]) -> None:
    for arm in arms:
        low, high = (1 - end for end in reversed(arm.interval))
        print(
            f"{arm.arm}: {arm.tries - arm.right} of {arm.tries} first tries fail "
            f"({100 * low:.0f} to {100 * high:.0f} %): {dict(arm.failures)}; "
            f"{arm.tokens_added or 0:.0f} tokens added"
        )
    for found in contrasts:
        low, high = (-end for end in reversed(found.interval))
        print(
            f"{found.arm} against {found.against}, {found.tasks} tasks: failures "
            f"{-100 * found.difference:+.0f} points ({100 * low:+.0f} to {100 * high:+.0f}), "
            f"{found.better} tasks better, {found.worse} worse, p = {found.p_value:.2g}"
        )


def main() -> int:
    """Run a command; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("learn", "prompts", "judge"))
    parser.add_argument("work", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--blocks", type=int, default=0, help="blocks of tasks, an answerer each")
    options = parser.parse_args()
    work = Work(options.work)
    try:
        if options.command == "learn":
            return learn(work)
        machine = Machine("cpu", TARGET, "gluon")
        tries, problems = tries_of(work, machine)
        go_on(work, tries, problems)
        if options.command == "judge":
            attempted = [found for problem in problems for found in tries.attempted(problem)]
            report(attempted, ignored(tries), str(machine), options.output, options.blocks)
    except BadInputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
