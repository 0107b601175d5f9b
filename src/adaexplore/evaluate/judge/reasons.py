"""Reasons of failures as those who ask a judge see them; this needs no torch."""

from __future__ import annotations

from dataclasses import replace

from adaexplore.core.candidate import Candidate
from adaexplore.core.verdict.evaluation import Evaluation, Failed
from adaexplore.languages import DIALECTS, other_language

OUT_OF_ROOM = "memory ran out on a GPU of which other processes hold"
"""The beginning of the reason where others left a candidate too little memory."""
_OF_LANGUAGE = ("compile_error", "runtime_error", "rejected", "not_run")


def with_language(verdict: Evaluation, candidate: Candidate) -> Evaluation:
    """Return a verdict that says so where a candidate that does not run is in another language."""
    if not isinstance(verdict, Failed) or verdict.status not in _OF_LANGUAGE:
        return verdict
    other = other_language(candidate.source, candidate.language)
    if other is None:
        return verdict
    titles = DIALECTS[other].title, DIALECTS[candidate.language].title
    hint = f"it is written in {titles[0]}, not in {titles[1]} (--language {other})"
    return replace(verdict, reason=f"{verdict.reason}; {hint}")


def is_out_of_room(verdict: Evaluation) -> bool:
    """Return true for a lack of memory that is not the candidate's failure."""
    return isinstance(verdict, Failed) and verdict.reason.startswith(OUT_OF_ROOM)
