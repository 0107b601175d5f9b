"""Proposers: from a problem and its context to a candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaexplore.core.lazy import lazy_names

if TYPE_CHECKING:
    from adaexplore.propose.tuner.space import space_of as space_of
else:
    __all__, __getattr__ = lazy_names(__name__, __file__)
