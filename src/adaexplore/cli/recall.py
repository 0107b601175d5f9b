"""What a memory has to say on a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adaexplore.evaluation import Failed
from adaexplore.memory.retrieve import relevant
from adaexplore.memory.signature import signature_of
from adaexplore.propose.base import Context
from adaexplore.rule import Rule


def recalling(rules: Sequence[Rule], most_tokens: int) -> Callable[[Context], list[str]]:
    """Gives the statements of the rules that a step's code, or its last failure, is about."""

    def rules_for(context: Context) -> list[str]:
        if context.problem.language != "triton":
            return []
        sources = [node.candidate.source for node in (*context.pool, *context.window)]
        last = context.window[-1].evaluation if context.window else None
        found = relevant(
            rules,
            "\n".join([context.problem.source, *sources]),
            triton=str(context.environment.get("triton", "")),
            failure=signature_of(last) if isinstance(last, Failed) else None,
            most_tokens=most_tokens,
            fill=not any(sources),
        )
        return [rule.statement for rule in found]

    return rules_for
