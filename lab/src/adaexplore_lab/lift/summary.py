"""The lift of a memory: first tries with it against first tries without, at the same tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from adaexplore.core import Problem, Rule
from adaexplore_lab.lift.proportions import Counts, interval, paired_interval, share_of, sign_test

RIGHT = "right"
"""The outcome of a first try that is valid: it compiles, its outputs are right, and it has a kernel
of its own. Any other outcome names what kept it from that."""


@dataclass(frozen=True, slots=True)
class TaskTries:
    """The first tries at a task in one arm.

    `outcomes` are in the order of the tries, those that nobody could judge left out. `rules` names
    those that were in the prompt, of `prompt_tokens` tokens by estimate.
    """

    task: str
    arm: str
    outcomes: tuple[str, ...]
    rules: frozenset[str] = frozenset()
    prompt_tokens: int = 0

    def first(self, tries: int) -> Counts:
        """Return the number of correct ones among the first tries, and the number of tries."""
        counted = self.outcomes[:tries]
        return counted.count(RIGHT), len(counted)


@dataclass(frozen=True, slots=True)
class ArmResult:
    """The first tries in one arm; `interval` is that of their share at the 95 % level.

    `failures` counts the outcomes that are not right. `tokens_added` is how much longer a prompt is
    than the same task's without memory, on average; None where no task had both.
    """

    arm: str
    tasks: int
    tries: int
    right: int
    interval: tuple[float, float]
    failures: Mapping[str, int]
    tokens_added: float | None


@dataclass(frozen=True, slots=True)
class Contrast:
    """The share of right first tries in an arm minus that in another, at the tasks that both had.

    Of each task as many tries count as both had, `tries` in all. `interval` is at the 95 % level
    and paired by task. At `better` tasks the arm had more right, at `worse` fewer, which `p_value`
    puts into a two-sided exact test.
    """

    arm: str
    against: str
    tasks: int
    tries: int
    shares: tuple[float, float]
    difference: float
    interval: tuple[float, float]
    better: int
    worse: int
    p_value: float


@dataclass(frozen=True, slots=True)
class RuleLift:
    """Gain of first tries where a rule is in the prompt.

    Against no memory at all, the prompt's other rules share in it; it is the rule's own where
    `alone` says that the memory without just this rule was what it was compared with.
    """

    rule: str
    contrast: Contrast
    alone: bool


@dataclass(frozen=True, slots=True)
class Lift:
    """All that was measured: the arms that were tried, pairs of them, and rules, largest first."""

    arms: Sequence[ArmResult]
    contrasts: Sequence[Contrast]
    rules: Sequence[RuleLift]


def measured(
    attempted: Sequence[TaskTries],
    rules: Sequence[Rule],
    *,
    baseline: str,
    arm: str,
    others: Sequence[str],
    without: Mapping[str, str],
) -> Lift:
    """Return the lift of an arm's memory and of its `rules`.

    The arm `baseline` has no memory, `others` have one that is compared with both, and `without`
    names the arms that leave a rule out, by the rule.
    """
    pairs = [(arm, baseline)]
    for other in others:
        pairs += [(other, baseline), (arm, other)]
    pairs += [(arm, other) for other in without.values()]
    results = (
        arm_result(a, attempted, baseline) for a in (baseline, arm, *others, *without.values())
    )
    contrasts = (contrast(a, against, attempted) for a, against in pairs)
    return Lift(
        [result for result in results if result],
        [found for found in contrasts if found],
        rule_lifts(rules, attempted, arm=arm, baseline=baseline, without=without),
    )


def source_of(rules: Iterable[Rule], problem: Problem) -> str:
    """The name of a rule that was learned from this problem, so that it is not held out; or "".

    By the problem's name or by its source, whatever its file is called now.
    """
    source = problem.source.strip()
    for rule in rules:
        if problem.name in rule.tasks or rule.reference.strip() == source:
            return rule.name
    return ""


def rules_in(prompt: str, rules: Iterable[Rule]) -> frozenset[str]:
    """The names of the rules whose statements a prompt lists, a line each."""
    lines = f"\n{prompt}\n"
    return frozenset(rule.name for rule in rules if f"\n- {rule.statement}\n" in lines)


def arm_result(arm: str, attempted: Iterable[TaskTries], baseline: str) -> ArmResult | None:
    """Return the result of an arm, None without tries. `baseline` is the arm without memory."""
    by_task = _by_task(attempted)
    found = [at for arms in by_task.values() if (at := arms.get(arm))]
    if not found:
        return None
    outcomes = Counter(outcome for at in found for outcome in at.outcomes)
    added = [
        arms[arm].prompt_tokens - arms[baseline].prompt_tokens
        for arms in by_task.values()
        if arm in arms and baseline in arms
    ]
    right = outcomes.pop(RIGHT, 0)
    return ArmResult(
        arm=arm,
        tasks=len(found),
        tries=right + outcomes.total(),
        right=right,
        interval=interval([at.first(len(at.outcomes)) for at in found]),
        failures=dict(sorted(outcomes.items())),
        tokens_added=fmean(added) if added else None,
    )


def contrast(
    arm: str, against: str, attempted: Iterable[TaskTries], rule: str = ""
) -> Contrast | None:
    """Two arms at the tasks that both had, or at those in whose prompt `arm` had a rule.

    None where there is no such task.
    """
    first: list[Counts] = []
    second: list[Counts] = []
    for arms in _by_task(attempted).values():
        one, other = arms.get(arm), arms.get(against)
        if one and other and (not rule or rule in one.rules):
            tries = min(len(one.outcomes), len(other.outcomes))
            first.append(one.first(tries))
            second.append(other.first(tries))
    if not first:
        return None
    shares = share_of(first), share_of(second)
    gained = [a[0] - b[0] for a, b in zip(first, second, strict=True)]
    better, worse = sum(gain > 0 for gain in gained), sum(gain < 0 for gain in gained)
    return Contrast(
        arm=arm,
        against=against,
        tasks=len(first),
        tries=sum(tries for _, tries in first),
        shares=shares,
        difference=shares[0] - shares[1],
        interval=paired_interval(first, second),
        better=better,
        worse=worse,
        p_value=sign_test(better, worse),
    )


def rule_lifts(
    rules: Sequence[Rule],
    attempted: Sequence[TaskTries],
    *,
    arm: str,
    baseline: str,
    without: Mapping[str, str],
) -> list[RuleLift]:
    """The lift of each rule that was in a prompt, largest first.

    `without` names the arms that leave a rule out, by the rule; where nothing was tried in one, the
    rule is compared with the `baseline`, which has no memory.
    """
    found = []
    for rule in rules:
        alone = contrast(arm, without.get(rule.name, ""), attempted, rule.name)
        if apart := alone or contrast(arm, baseline, attempted, rule.name):
            found.append(RuleLift(rule.name, apart, apart is alone))
    return sorted(found, key=lambda lift: (-lift.contrast.difference, lift.rule))


def noted(rules: Iterable[Rule], lifts: Iterable[RuleLift]) -> list[Rule]:
    """The rules with what was measured; those that were in no prompt as they are."""
    by_rule = {lift.rule: lift.contrast for lift in lifts}
    return [
        replace(rule, lift=round(found.difference, 3), lift_tries=found.tries)
        if (found := by_rule.get(rule.name))
        else rule
        for rule in rules
    ]


def to_json(found: ArmResult | Contrast | RuleLift | TaskTries) -> dict[str, Any]:
    """Plain data, of the same names."""
    data = asdict(found)
    if isinstance(found, TaskTries):
        data["rules"] = sorted(found.rules)
    return data


def _by_task(attempted: Iterable[TaskTries]) -> dict[str, dict[str, TaskTries]]:
    """Return the tasks that were tried at least once, by task and arm."""
    found: dict[str, dict[str, TaskTries]] = {}
    for at in attempted:
        if at.outcomes:
            found.setdefault(at.task, {})[at.arm] = at
    return found
