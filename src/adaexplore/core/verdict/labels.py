"""Labels of problems and of measurements that decide which mean a speedup belongs to."""

from __future__ import annotations

from collections.abc import Iterable

ALGEBRA = "algebra"
"""A candidate needs less than the reference's work: it is clearly beyond the roofline of that."""

OVERHEAD_BOUND = "overhead-bound"
"""Launching takes much of the reference's time."""

SYNTHESIZED = "synthesized-data"
"""Data of the problem, such as the indices of pages, was made up: its dataset lacks it here."""

CONSTANT_WEIGHTS = "constant-weights"
"""A candidate takes weights for constants that are the same under every seed, such as zeros.

It folded them in its constructor, or skips what they do: its output cannot tell.
"""

WAITS_FOR_BLOCKS = "waits-for-blocks"
"""Blocks of a kernel wait for other blocks of a launch that is not cooperative.

It hangs where not all of them run at once, so nothing is claimed for it.
"""

WAITS_BY_LEAVE = "waits-for-blocks:allowed"
"""The same, where the user allows it."""

NO_INDEPENDENT_TRUTH = "no-independent-truth"
"""The reference is a kernel itself: what it does wrong is right here."""

UNIFORM_INPUTS = "uniform-inputs"
"""A benchmark draws every input between 0 and 1, where `abs` and `relu` change nothing."""

WITHOUT_DROPOUT = "without-dropout"
"""A benchmark's function is called without the dropout that it has there."""

INPUTS_CLONED = "inputs-cloned"
"""A benchmark's function writes to its inputs: it is given clones of them, in the time measured."""

FLOAT_WORK = "float-work"
"""A benchmark calls a task quantised, and its reference computes in floating point alone."""

INTEGER_OUTPUT = "integer-output"
"""All outputs are of integers or booleans: they must be equal, whatever the precision class."""

TRAINING_STEP = "training-step"
"""A call goes forward and backward: a speedup is that of the whole step."""

_OF_WINNERS = frozenset({CONSTANT_WEIGHTS, WAITS_FOR_BLOCKS})
_REMARKS = frozenset(
    {OVERHEAD_BOUND, SYNTHESIZED, UNIFORM_INPUTS, WITHOUT_DROPOUT, INPUTS_CLONED, FLOAT_WORK}
    | {INTEGER_OUTPUT, TRAINING_STEP}
)


def set_apart(labels: Iterable[str]) -> bool:
    """Return whether a problem's labels keep its speedup out of the means of ordinary problems.

    A remark does not: against the strongest baseline such a problem is ordinary.
    """
    return any(label not in _REMARKS for label in labels)


def may_be_claimed(labels: Iterable[str]) -> bool:
    """Return whether a speedup with these labels of the candidate may be claimed."""
    return WAITS_FOR_BLOCKS not in labels


def winner_set_apart(labels: Iterable[str]) -> bool:
    """Return whether a winner's own labels keep its speedup out of the means of ordinary ones."""
    return not _OF_WINNERS.isdisjoint(labels)
