"""Systemic failures. A failing candidate is data (`evaluation.Failed`), never one of these."""

from __future__ import annotations


class AdaExploreError(Exception):
    """Base of everything this package raises on purpose; its text is one line for a person."""

    exit_code = 2


class BadInputError(AdaExploreError):
    """The user's file, option or run directory cannot be used: what, where, how to mend it."""


class BadProblemError(BadInputError):
    """The reference itself cannot be loaded, run or verified against."""


class InfrastructureError(AdaExploreError):
    """The machinery around the candidate broke: a lost worker, a driver fault, no disk."""

    exit_code = 3
