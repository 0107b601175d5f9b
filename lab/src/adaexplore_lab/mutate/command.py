"""The command `adaexplore-lab mutate`."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from adaexplore.core import write_whole
from adaexplore_lab.console import say
from adaexplore_lab.mutate import choose, listed
from adaexplore_lab.mutate.mutants import Mutant
from adaexplore_lab.mutate.outcomes import Outcome, Outcomes
from adaexplore_lab.mutate.trial import Trial
from adaexplore_lab.mutate.which_tests import WhichTests

NAMED = "named"


@dataclass(frozen=True, slots=True)
class MutateOptions:
    """What to mutate and how long, as the command line has it."""

    targets: Sequence[str]
    root: Path
    lists: Path
    sample: int
    seed: int
    jobs: int
    minutes: float
    limit_s: float
    again: bool
    least: float
    outcomes: Path
    output: Path | None


@dataclass(frozen=True, slots=True)
class Score:
    """How many mutants of a target died, of those whose fate is known."""

    population: int
    tried: int
    killed: int
    late: int
    equivalent: int

    @property
    def share(self) -> float:
        """The share of the mutants that are not equivalent which died; 1.0 without any."""
        able = self.tried - self.equivalent
        return (self.killed + self.late) / able if able else 1.0


def mutate(options: MutateOptions) -> int:
    """Try the named mutants and a sample of each target's; return the exit code."""
    console = Console()
    root = options.root.resolve()
    lists = root / options.lists
    plan = listed.plan(lists / "mutate.toml")
    targets = options.targets or plan.targets
    populations = {target: choose.mutants_of(target, root) for target in targets}
    everything = [mutant for population in populations.values() for mutant in population]
    equivalent = listed.equivalent(lists / "equivalent.toml", everything)
    on_gpu = listed.on_gpu(lists / "gpu.toml", everything)
    for target, population in populations.items():
        populations[target] = [m for m in population if m.identity not in on_gpu]
    chosen = {NAMED: listed.named(lists / "named.toml", root)}
    for target, population in populations.items():
        chosen[target] = choose.sample(population, options.sample, options.seed)
    outcomes = Outcomes(options.outcomes)
    in_order = [*chosen[NAMED], *choose.in_turn([chosen[target] for target in targets])]
    to_try = _to_try(in_order, outcomes, equivalent, again=options.again)
    say(
        console,
        f"{len(in_order)} of {len(everything)} mutants chosen, {len(to_try)} to try; "
        f"{len(on_gpu)} need a GPU and are left out",
    )
    trial = Trial(
        root,
        WhichTests(root, plan.tests),
        outcomes,
        jobs=options.jobs,
        limit_s=options.limit_s,
    )
    until = time.monotonic() + 60.0 * options.minutes

    def report(outcome: Outcome) -> None:
        say(console, f"{outcome.fate:9} {outcome.seconds:6.1f} s  {_first_line(outcome)}")

    trial.run(to_try, until, report)
    known = outcomes.of(in_order)
    sizes = {NAMED: len(chosen[NAMED])} | {t: len(p) for t, p in populations.items()}
    scores = {
        target: _score(sizes[target], mutants, known, equivalent)
        for target, mutants in chosen.items()
    }
    return _tell(console, options, scores, known, equivalent)


def _to_try(
    mutants: Sequence[Mutant], outcomes: Outcomes, equivalent: set[str], *, again: bool
) -> list[Mutant]:
    """Return the mutants without an outcome; `again` also those that survived."""
    known = outcomes.of(mutants)
    settled = ("killed", "late") if again else ("killed", "late", "survived", "undecided")
    return [
        m
        for m in mutants
        if m.identity not in equivalent
        and not (m.identity in known and known[m.identity].fate in settled)
    ]


def _score(
    population: int, mutants: Sequence[Mutant], known: Mapping[str, Outcome], equivalent: set[str]
) -> Score:
    """Count fates; a mutant whose fate is undecided counts as not tried."""
    same = sum(mutant.identity in equivalent for mutant in mutants)
    fates = Counter(
        known[m.identity].fate
        for m in mutants
        if m.identity in known and m.identity not in equivalent
    )
    tried = fates["killed"] + fates["late"] + fates["survived"] + same
    return Score(population, tried, fates["killed"], fates["late"], same)


def _tell(
    console: Console,
    options: MutateOptions,
    scores: Mapping[str, Score],
    known: Mapping[str, Outcome],
    equivalent: set[str],
) -> int:
    """Print scores and survivors, write the file, and return the exit code."""
    survivors = [
        outcome
        for identity, outcome in known.items()
        if outcome.fate in ("survived", "undecided") and identity not in equivalent
    ]
    for outcome in survivors:
        say(console, f"\n{outcome.fate}: {outcome.told}")
    sampled = [score for target, score in scores.items() if target != NAMED]
    scores = dict(scores) | {"all targets": _sum(sampled)}
    say(console, "\nmutants  tried  killed  late  equivalent   score")
    for target, score in scores.items():
        counts = f"{score.population:7} {score.tried:6} {score.killed:7} {score.late:5}"
        say(console, f"{counts} {score.equivalent:11} {score.share:7.1%}  {target}")
    if options.output is not None:
        write_whole(
            options.output, json.dumps(_record(options, scores, survivors), indent=1) + "\n"
        )
    named = scores[NAMED]
    all_named_died = named.killed + named.late == named.population
    return 0 if all_named_died and scores["all targets"].share >= options.least else 1


def _sum(scores: Sequence[Score]) -> Score:
    return Score(
        sum(score.population for score in scores),
        sum(score.tried for score in scores),
        sum(score.killed for score in scores),
        sum(score.late for score in scores),
        sum(score.equivalent for score in scores),
    )


def _record(
    options: MutateOptions, scores: Mapping[str, Score], survivors: Sequence[Outcome]
) -> dict[str, object]:
    return {
        "command": " ".join(["adaexplore-lab", *sys.argv[1:]]),
        "seed": options.seed,
        "scores": {
            target: {
                "mutants": score.population,
                "tried": score.tried,
                "killed": score.killed,
                "late": score.late,
                "equivalent": score.equivalent,
                "score": round(score.share, 4),
            }
            for target, score in scores.items()
        },
        "survivors": [
            {"fate": outcome.fate, "mutant": outcome.told.split("\n    ")} for outcome in survivors
        ],
    }


def _first_line(outcome: Outcome) -> str:
    head = outcome.told.partition("\n")[0]
    return f"{head}  [{outcome.by}]" if outcome.by else head
