"""The uses of a winner outside the judge, as the end of a search needs them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap

from adaexplore.core.candidate import Candidate
from adaexplore.core.protocols.evaluator import Evaluator, TriesUses
from adaexplore.core.text.uses import describe_uses
from adaexplore.core.verdict.evaluation import Evaluation, Passed
from adaexplore.core.verdict.uses import Use
from adaexplore.run.outcome.no_backward import refusing_backward

_WIDTH = 100
_TITLE = (
    "# The winner of a search by AdaExplore. It was also tried as a module in a user's hands:",
    '# (docs/evaluator.md, "Uses outside the judge", says what each trial does)',
)
_REFUSES = f"""

{inspect.getsource(refusing_backward)}

ModelNew.forward = {refusing_backward.__name__}(ModelNew.forward)
"""


def with_uses(evaluation: Evaluation, candidate: Candidate, evaluator: Evaluator) -> Evaluation:
    """Return the evaluation of a measured candidate with the uses outside the judge.

    Nothing is tried twice, nor by an evaluator that cannot.
    """
    if (
        not isinstance(evaluation, Passed)
        or not evaluation.measured
        or evaluation.uses
        or not isinstance(evaluator, TriesUses)
    ):
        return evaluation
    return replace(evaluation, uses=evaluator.try_uses(candidate))


def to_use(source: str, uses: Sequence[Use]) -> str:
    """Return the source of a winner for its users: with its uses as comments at the top.

    They may quote a candidate's exceptions, so none is on the first two lines, where Python looks
    for an encoding. If gradients get lost, code at the end lets a backward pass raise.
    """
    lines = [*_TITLE] if uses else []
    for _, text in describe_uses(uses):
        lines += wrap(text, _WIDTH, initial_indent="# - ", subsequent_indent="#   ")
    if any(use.outcome == "detached" for use in uses):
        lines.append("# The last lines of this file let a backward pass raise.")
        source = f"{source.rstrip()}\n{_REFUSES}"
    return "".join(f"{line}\n" for line in lines) + source
