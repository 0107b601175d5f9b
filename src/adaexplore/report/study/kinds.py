"""Gain and code similarity by kind of step, and the use of the memory, for each arm."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from adaexplore.core.node import StepKind
from adaexplore.report.study.runs import StudyRun

_KINDS: tuple[StepKind, ...] = ("large", "small", "tune")


@dataclass(frozen=True, slots=True)
class KindRow:
    """An arm's steps of one kind.

    `correct`, `faster` and `improved` are shares of the steps: with a correct kernel, with one
    faster than its base, with a new best. `gain` is the geometric mean of the speedups over the
    bases of the `compared` steps that have both measured. `similarity` is the mean over the steps
    with a base.
    """

    arm: str
    kind: StepKind
    steps: int
    correct: float
    faster: float
    improved: float
    compared: int
    gain: float | None
    similarity: float | None


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """An arm's use of its memory.

    `prompted` counts the steps with prompts. `per_step` and `tokens` are the mean number and length
    of the rules that they told, `distinct` the number of different ones. `breaking` is the share of
    all steps whose source breaks a rule of the memory, `breaking_shown` of those that break one
    that they were told. The last two are shares of correct kernels among steps that break a rule
    and among those that break none, None without such steps.
    """

    arm: str
    memory: str
    rules: int
    prompted: int
    per_step: float
    tokens: float
    distinct: int
    breaking: float
    breaking_shown: float
    correct_breaking: float | None
    correct_keeping: float | None


def kind_rows(runs: Sequence[StudyRun], arms: Sequence[str]) -> Iterator[KindRow]:
    """Yield a row for every arm and kind of step that it made."""
    for arm in arms:
        steps = [step for run in runs if run.arm == arm for step in run.steps]
        for kind in _KINDS:
            own = [step for step in steps if step.kind == kind]
            if not own:
                continue
            gains = [step.gain for step in own if step.gain is not None]
            alike = [step.similarity for step in own if step.similarity is not None]
            yield KindRow(
                arm=arm,
                kind=kind,
                steps=len(own),
                correct=fmean(step.correct for step in own),
                faster=fmean((step.gain or 0.0) > 0 for step in own),
                improved=fmean(step.improved for step in own),
                compared=len(gains),
                gain=math.exp(fmean(gains)) if gains else None,
                similarity=fmean(alike) if alike else None,
            )


def memory_rows(runs: Sequence[StudyRun], arms: Sequence[str]) -> Iterator[MemoryRow]:
    """Yield a row for every arm that has made a step."""
    for arm in arms:
        own = [run for run in runs if run.arm == arm and run.steps]
        if not own:
            continue
        steps = [step for run in own for step in run.steps]
        prompted = [step for step in steps if step.prompted]
        breaking = [step for step in steps if step.broken]
        keeping = [step for step in steps if not step.broken]
        yield MemoryRow(
            arm=arm,
            memory=", ".join(dict.fromkeys(run.memory for run in own)),
            rules=max(run.rules for run in own),
            prompted=len(prompted),
            per_step=fmean([len(step.shown) for step in prompted] or [0.0]),
            tokens=fmean([step.rule_tokens for step in prompted] or [0.0]),
            distinct=len({name for step in steps for name in step.shown}),
            breaking=len(breaking) / len(steps),
            breaking_shown=fmean(bool({*step.broken} & {*step.shown}) for step in steps),
            correct_breaking=fmean(step.correct for step in breaking) if breaking else None,
            correct_keeping=fmean(step.correct for step in keeping) if keeping else None,
        )
