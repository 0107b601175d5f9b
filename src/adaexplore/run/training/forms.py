"""Rows of training data, one function for each form; all are pure functions of recorded runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from adaexplore.core.node import ROOT_ID, Node
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import Timing
from adaexplore.run.training.prompts import answer, feedback_prompt, task_prompt
from adaexplore.run.training.recorded import RecordedRun
from adaexplore.search.named_rewards import reward_of

Row = dict[str, Any]
Messages = list[dict[str, str]]
SOURCE = "adaexplore"


def rl_rows(runs: Sequence[RecordedRun], reward: str) -> Iterator[Row]:
    """Give a row of verl for each problem: its task as the prompt, its reference as the truth.

    `best_reward` and `best_speedup` are the highest that the runs reached, None without any.
    """
    by_problem: dict[str, list[RecordedRun]] = {}
    for run in runs:
        by_problem.setdefault(run.problem.digest, []).append(run)
    for index, same in enumerate(by_problem.values()):
        problem = same[0].problem
        rewards = [reward_of(reward, run.evaluation(node)) for run in same for node in run.nodes]
        speedups = [t.speedup for run in same for node in run.nodes if (t := run.timing(node))]
        yield _facts(same[0]) | {
            "data_source": SOURCE,
            "prompt": [_user(_task(problem))],
            "ability": "kernel",
            "reward_model": {"style": "rule", "ground_truth": problem.source},
            "extra_info": {
                "index": index,
                "name": problem.name,
                "uuid": problem.digest,
                "entry_point": "Model",
                "language": problem.language,
                "precision": problem.precision,
                "reward": reward,
                "best_reward": max((r for r in rewards if r is not None), default=None),
                "best_speedup": max(speedups, default=None),
            },
        }


def sft_rows(runs: Sequence[RecordedRun], reward: str) -> Iterator[Row]:
    """Give a conversation for each run with a winner: its path, each verdict as the next turn."""
    for run in runs:
        winner = run.winner
        if winner is None:
            continue
        path = run.path(winner)
        messages = [_user(_task(run.problem))]
        for before, node in zip([None, *path], path, strict=False):
            messages += [_user(feedback_prompt(run.evaluation(before)))] if before else []
            messages.append(_assistant(answer(node.proposal.note, node.candidate.source)))
        yield _of_step(run, winner, reward) | {"messages": messages, "turns": len(path)}


def step_rows(runs: Sequence[RecordedRun], reward: str) -> Iterator[Row]:
    """Give a prompt and its reply for each step with a gain, as a model was asked where one was.

    `gain` is the speedup over the fastest kernel before it on its path, and over the strongest
    baseline where none was correct. A gain within the noise of its measurement is none.
    """
    for run in runs:
        for node in run.nodes:
            gain = _gain(run, node)
            if gain is not None:
                row = _of_step(run, node, reward)
                yield row | {"messages": _asked(run, node), "gain": gain}


def preference_rows(runs: Sequence[RecordedRun], reward: str) -> Iterator[Row]:
    """Give pairs of kernels made from the same one, where one is better for certain.

    `chosen` is the kernel with the highest reward of those that may be examples, of equals the
    fastest. A measured kernel
    is `rejected` only where the intervals of both speedups lie apart.
    """
    for run in runs:
        families: dict[int, list[Node]] = {}
        for node in run.nodes:
            if node.candidate.source and not node.reused:
                families.setdefault(node.parent_id, []).append(node)
        for parent_id, family in families.items():
            yield from _pairs(run, parent_id, family, reward)


FORMS: Mapping[str, Callable[[Sequence[RecordedRun], str], Iterator[Row]]] = MappingProxyType(
    {"rl": rl_rows, "sft": sft_rows, "sft-steps": step_rows, "preferences": preference_rows}
)
"""All forms by name."""


def _pairs(run: RecordedRun, parent_id: int, family: list[Node], reward: str) -> Iterator[Row]:
    found = [(node, reward_of(reward, run.evaluation(node))) for node in family]
    judged = [(node, value) for node, value in found if value is not None]
    examples = [
        (value, timing.speedup, -node.id) for node, value in judged if (timing := run.timing(node))
    ]
    if not examples:
        return
    highest, _, negative = max(examples)
    best = run.nodes[-negative - 1]
    prompt = [_user(_task_after(run, parent_id))]
    for other, value in judged:
        if value < highest and _is_apart(run, best, other):
            yield _of_step(run, best, reward) | {
                "prompt": prompt,
                "chosen": [_assistant(answer("", best.candidate.source))],
                "rejected": [_assistant(answer("", other.candidate.source))],
                "rejected_reward": value,
                "rejected_status": run.evaluation(other).status,
            }


def _is_apart(run: RecordedRun, best: Node, other: Node) -> bool:
    fast, slow = run.timing(best), run.timing(other)
    return slow is None or (fast is not None and fast.noise_ci[0] > slow.noise_ci[1])


def _gain(run: RecordedRun, node: Node) -> float | None:
    """Return the gain of a step, None where there is none for certain."""
    timing = run.timing(node)
    if timing is None:
        return None
    before = [t for each in run.path(node)[:-1] if (t := run.timing(each))]
    base = max((t.speedup for t in before), default=1.0)
    paired = timing.parent
    if paired and before and _is_parent(run, node, base):
        return paired.speedup if paired.speedup_ci[0] > 1 else None
    return timing.speedup / base if timing.noise_ci[0] > base else None


def _is_parent(run: RecordedRun, node: Node, speedup: float) -> bool:
    """Return whether the step's parent has this speedup: the two were measured together."""
    parent: Timing | None = run.timing(run.nodes[node.parent_id - 1])
    return parent is not None and parent.speedup == speedup


def _asked(run: RecordedRun, node: Node) -> Messages:
    """Return the exchange that made a step, or the same task in the words of `prompts`."""
    exchange = run.exchanges.get(node.ask_id or 0)
    proposal = node.proposal
    if exchange and proposal.reply and exchange.reply.text == proposal.reply:
        sent = [{"role": m.role, "content": m.text} for m in exchange.prompt.messages]
        return [*sent, _assistant(proposal.reply)]
    if proposal.prompt and proposal.reply:
        return [_user(proposal.prompt), _assistant(proposal.reply)]
    task = _task_after(run, node.parent_id)
    return [_user(task), _assistant(answer(proposal.note, node.candidate.source))]


def _task(problem: Problem) -> str:
    checks = problem.checks
    return task_prompt(problem.source, problem.language, checks.precision, backward=checks.backward)


def _task_after(run: RecordedRun, parent_id: int) -> str:
    """Return the task, with the kernel to begin from and its verdict."""
    task = _task(run.problem)
    if parent_id == ROOT_ID or not run.nodes[parent_id - 1].candidate.source:
        return task
    parent = run.nodes[parent_id - 1]
    current = answer("The current kernel:", parent.candidate.source)
    return f"{task}\n\n{current}\n\n{feedback_prompt(run.evaluation(parent))}"


def _of_step(run: RecordedRun, node: Node, reward: str) -> Row:
    timing = run.timing(node)
    exchange = run.exchanges.get(node.ask_id or 0)
    return _facts(run) | {
        "step": node.id,
        "origin": node.proposal.origin,
        "model": exchange.reply.model if exchange else "",
        "reward": reward_of(reward, run.evaluation(node)),
        "speedup": timing.speedup if timing else None,
    }


def _facts(run: RecordedRun) -> Row:
    problem = run.problem
    return {
        "problem": problem.name,
        "language": problem.language,
        "device": problem.device.partition(":")[0],
        "license": run.license,
        "run": run.name,
    }


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}
