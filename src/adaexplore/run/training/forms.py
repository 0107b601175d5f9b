"""Forms of rows for trainers: tasks to attempt, conversations to imitate, pairs to prefer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adaexplore.core.evaluation import Passed
from adaexplore.core.node import Node
from adaexplore.core.protocols.client import Message
from adaexplore.run.training.recorded import Conversation, RecordedRun
from adaexplore.run.training.rewards import UNJUDGED, Reward

DATA_SOURCE = "adaexplore"
_WHOLE = "class ModelNew"

Row = Mapping[str, Any]
Form = Callable[[Sequence[RecordedRun], Reward], Iterator[Row]]


def rl(runs: Sequence[RecordedRun], _: Reward) -> Iterator[Row]:
    """Yield a task for each problem: its first prompt, as verl reads rows.

    `ground_truth` is the source of the reference; a reward function judges replies against it.
    """
    seen: set[str] = set()
    for run in runs:
        prompt = next((run.prompt(node) for node in run.nodes if run.prompt(node)), ())
        problem = run.record.problem
        if not prompt or problem.digest in seen:
            continue
        seen.add(problem.digest)
        yield {
            "data_source": DATA_SOURCE,
            "prompt": _messages(prompt),
            "ability": "kernel",
            "reward_model": {"style": "rule", "ground_truth": problem.source},
            "extra_info": {"index": len(seen) - 1, **_about(run)},
        }


def sft(runs: Sequence[RecordedRun], reward: Reward) -> Iterator[Row]:
    """Yield the conversations that led to the best candidate of each run, one after the other."""
    for run in runs:
        path = run.path_to_best()
        talks = [talk for talk in map(run.conversation, path) if talk]
        if talks:
            yield {"messages": _messages(_joined(talks)), **_scored(run, path[-1], reward)}


def sft_steps(runs: Sequence[RecordedRun], reward: Reward) -> Iterator[Row]:
    """Yield the conversation of each step that is faster than its parent, with the `gain`.

    The gain is the ratio of speedups, over 1x where the parent is no correct candidate; the noise
    of the measurement must not reach down to it.
    """
    for run in runs:
        for node in run.nodes:
            talk, gain = run.conversation(node), _gain(run, node)
            if talk and gain and gain > 1.0:
                yield {"messages": _messages(talk), "gain": gain, **_scored(run, node, reward)}


def preferences(runs: Sequence[RecordedRun], reward: Reward) -> Iterator[Row]:
    """Yield pairs of replies to one prompt of which one is surely better."""
    for replies in _replies_by_prompt(runs).values():
        for better in replies:
            for worse in replies:
                if _is_better(better.node, worse.node) and better.text != worse.text:
                    yield {
                        "prompt": _messages(better.prompt),
                        "chosen": _messages((Message("assistant", better.text),)),
                        "rejected": _messages((Message("assistant", worse.text),)),
                        "rejected_reward": reward(worse.node.evaluation),
                        **_scored(better.run, better.node, reward),
                    }


FORMS: Mapping[str, Form] = {
    "rl": rl,
    "sft": sft,
    "sft-steps": sft_steps,
    "preferences": preferences,
}
"""Forms of rows by name."""


@dataclass(frozen=True, slots=True)
class _Reply:
    run: RecordedRun
    node: Node
    prompt: Conversation
    text: str


def _replies_by_prompt(
    runs: Sequence[RecordedRun],
) -> Mapping[tuple[str, Conversation], list[_Reply]]:
    found: dict[tuple[str, Conversation], list[_Reply]] = {}
    for run in runs:
        for node in run.nodes:
            talk = run.conversation(node)
            for prompt in _prompts(talk):
                reply = _Reply(run, node, prompt, talk[-1].text)
                found.setdefault((run.record.problem.digest, prompt), []).append(reply)
    return found


def _prompts(talk: Conversation) -> list[Conversation]:
    """Return the prompts that the last reply of a conversation answers, the whole one last.

    A module that is written whole answers the prompts of earlier turns, too; a patch does not.
    """
    prompts = [talk[:i] for i, message in enumerate(talk) if message.role == "assistant"]
    return prompts if prompts and _WHOLE in talk[-1].text else prompts[-1:]


def _is_better(one: Node, other: Node) -> bool:
    """Return whether a step is better by its verdict, or faster beyond the noise."""
    first, second = one.evaluation, other.evaluation
    if not isinstance(first, Passed) or _is_unjudged(other):
        return False
    if not isinstance(second, Passed):
        return True
    ours, theirs = first.measured, second.measured
    return bool(ours and theirs and ours.noise_ci[0] > theirs.noise_ci[1])


def _gain(run: RecordedRun, node: Node) -> float | None:
    evaluation = node.evaluation
    if not isinstance(evaluation, Passed) or not evaluation.measured:
        return None
    parent = run.by_id.get(node.parent_id)
    before = parent.evaluation if parent else None
    timing = before.measured if isinstance(before, Passed) else None
    return evaluation.measured.at_least / (timing.speedup if timing else 1.0)


def _is_unjudged(node: Node) -> bool:
    return node.evaluation.status in UNJUDGED


def _joined(talks: Sequence[Conversation]) -> Conversation:
    """Return conversations as one: no turn twice, and the system's message once."""
    joined = talks[0]
    for talk in talks[1:]:
        if talk[: len(joined)] == joined:
            joined = talk
        else:
            joined += tuple(message for message in talk if message.role != "system")
    return joined


def _messages(conversation: Conversation) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.text} for message in conversation]


def _about(run: RecordedRun) -> dict[str, Any]:
    record = run.record
    return {
        "run": run.name,
        "problem": record.problem.name,
        "problem_digest": record.problem.digest,
        "licence": run.licence,
        "language": record.problem.language,
        "precision": record.problem.precision,
        "gpu": record.environment.gpu,
        "torch": record.environment.torch,
        "triton": record.environment.triton,
    }


def _scored(run: RecordedRun, node: Node, reward: Reward) -> dict[str, Any]:
    evaluation = node.evaluation
    timing = evaluation.measured if isinstance(evaluation, Passed) else None
    return {
        **_about(run),
        "step": node.id,
        "reward": reward(evaluation),
        "speedup": timing.speedup if timing else None,
        "speedup_eager": timing.speedup_eager if timing else None,
    }
