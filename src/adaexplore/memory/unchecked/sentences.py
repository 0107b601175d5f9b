"""Unchecked rules as the published system makes them (arXiv 2604.16625): one sentence a failure.

A model says in a sentence what a failed program must not do, and then whether a rule of the memory
says the same: that rule counts one more failure, or the sentence is a new rule with count 1.
Nothing is run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files

from adaexplore.core.node import Node, planned_steps
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.client import Message, Prompt
from adaexplore.core.rule import Rule, unchecked_rule
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.llm.templating import Templates
from adaexplore.memory.extract import Failure

SENTENCE, SAME = "sentence", "sentence.same"
_NO_GUIDANCE = "no guidance"
_SURE = 0.5
"""A match counts above this confidence, which is also that of a reply that gives none."""

_TEMPLATES: Mapping[str, Sequence[str]] = {
    "sentence.j2": ("source", "error"),
    "same_sentence.j2": ("rules", "sentence"),
}
_RAISED = frozenset({"compile_error", "runtime_error", "timeout", "out_of_memory"})


def errors_of(problem: Problem, nodes: Iterable[Node]) -> list[Failure]:
    """Return the failures of a run that the published system learns from, each step's own.

    Those are errors in compiling and running, and outputs of the wrong form; not outputs with wrong
    numbers. A kernel that fails in several steps fails several times.
    """
    if problem.language != "triton":
        return []
    return [
        Failure(problem.name, problem.source, node.candidate.source, node.evaluation, node.id)
        for node in planned_steps(list(nodes))
        if isinstance(node.evaluation, Failed)
        and not node.proposal.failure
        and _is_error(node.evaluation)
    ]


def sentence_prompt(failure: Failure) -> Prompt:
    """Ask for the rule of a failure, in one sentence."""
    failed = failure.failed
    error = "\n".join(filter(None, [f"{failed.status}: {failed.reason}", failed.detail.strip()]))
    return _prompt("sentence.j2", {"source": failure.source, "error": error}, SENTENCE)


def read_sentence(reply: str) -> str:
    """Return the sentence in a reply, its last line; "" where the reply has none."""
    lines = reply.strip().splitlines()
    return "" if not lines or _NO_GUIDANCE in reply.lower() else lines[-1].strip()


def same_prompt(sentence: str, rules: Sequence[Rule]) -> Prompt:
    """Ask which of the rules, if any, says what a sentence says."""
    told = {"rules": [rule.statement for rule in rules], "sentence": sentence}
    return _prompt("same_sentence.j2", told, SAME)


def read_same(reply: str, rules: Sequence[Rule]) -> Rule | None:
    """Return the rule that a reply names with enough confidence; None for a new sentence."""
    found = re.search(r"\{[^}]+\}", reply)
    if found is None:
        return _without_json(reply, rules)
    try:
        answer = json.loads(found[0])
        number, sure = answer.get("matched_index"), float(answer.get("confidence", _SURE))
    except (ValueError, TypeError):
        return None
    if not answer.get("is_duplicate") or sure <= _SURE or not isinstance(number, int):
        return None
    return rules[number - 1] if 1 <= number <= len(rules) else None


def new_rule(sentence: str, rules: Sequence[Rule], task: str) -> Rule:
    """Return the rule of a new sentence; the names of rules are in the order of their making.

    They come after those of `statements.unchecked_rules`.
    """
    numbers = (re.match(r"unchecked-(\d+)-", rule.name) for rule in rules)
    number = max((int(match[1]) for match in numbers if match), default=0) + 1
    digest = hashlib.sha256(sentence.encode()).hexdigest()[:6]
    name = f"unchecked-{number:05d}-{digest}"
    return unchecked_rule(name, sentence, support=1, source="failure", tasks=(task,))


def _is_error(failed: Failed) -> bool:
    wrong_form = failed.status == "wrong_output" and failed.feedback is None
    return wrong_form or failed.status in _RAISED


def _without_json(reply: str, rules: Sequence[Rule]) -> Rule | None:
    """Return the rule of the first number in a reply that speaks of a duplicate."""
    text = reply.lower()
    number = re.search(r"\d+", text)
    if "true" not in text or "duplicate" not in text or number is None:
        return None
    return rules[int(number[0]) - 1] if 1 <= int(number[0]) <= len(rules) else None


def _prompt(template: str, variables: Mapping[str, object], label: str) -> Prompt:
    return Prompt((Message("user", _templates().render(template, variables)),), label)


@cache
def _templates() -> Templates:
    return Templates(files("adaexplore.memory") / "templates", {}, _TEMPLATES)
