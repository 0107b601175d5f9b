"""Exceptions for systemic failures. A failing candidate is data (`evaluation.Failed`)."""

from __future__ import annotations


class AdaExploreError(Exception):
    """Base class of every exception this package raises on purpose, with a message of one line."""

    exit_code = 2


class BadInputError(AdaExploreError):
    """Unusable file, option or run directory; the message says what, where and how to mend it."""


class RunInUseError(BadInputError):
    """Run that another process is writing."""


class BadProblemError(BadInputError):
    """Reference that cannot be loaded, run or verified against."""


class NoClusterError(BadInputError):
    """Address at which no Ray cluster can be joined."""


class DatabaseGoneError(BadInputError):
    """Database that cannot be reached; the work can go on once it is back."""


class InfrastructureError(AdaExploreError):
    """Failure of the system around the candidate: a lost worker, a driver fault, no disk."""

    exit_code = 3


class ClusterGoneError(InfrastructureError):
    """Ray cluster that lost its head, or all devices; the work can go on once it is back."""
