"""Sizes of tensors: numbers with the text that a person would write for them."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from adaexplore.core import AdaExploreError


class UnfitError(AdaExploreError):
    """A production does not fit what has been grown so far; another is tried."""


@dataclass(frozen=True, slots=True)
class Dim:
    """A size: its value and an expression for it, over names of other sizes."""

    value: int
    text: str

    @staticmethod
    def of(value: int) -> Dim:
        """A size that is written as a number."""
        return Dim(value, str(value))

    @property
    def is_simple(self) -> bool:
        """Return True for a single name or number."""
        return re.fullmatch(r"\w+", self.text) is not None

    def plus(self, number: int) -> Dim:
        """The size plus a number of either sign."""
        value = self.value + number
        added = re.fullmatch(r"(.+) ([+-]) (\d+)", self.text)
        if added:
            number += int(added[2] + added[3])
        rest = added[1] if added else self.text
        if self.text.isdigit():
            return Dim.of(value)
        if number == 0:
            return Dim(value, rest)
        return Dim(value, f"{rest} {'+' if number > 0 else '-'} {abs(number)}")

    def times(self, other: int | Dim) -> Dim:
        """The product with a number or another size."""
        other = Dim.of(other) if isinstance(other, int) else other
        if other.value == 1:
            return self
        if self.value == 1:
            return other
        if self.text.isdigit() and other.text.isdigit():
            return Dim.of(self.value * other.value)
        return Dim(self.value * other.value, f"{other._factor} * {self._factor}")

    def over(self, number: int) -> Dim:
        """The quotient, rounded down."""
        if number == 1:
            return self
        if self.text.isdigit():
            return Dim.of(self.value // number)
        return Dim(self.value // number, f"{self._factor} // {number}")

    @property
    def _factor(self) -> str:
        return self.text if self.is_simple else f"({self.text})"


Shape = tuple[Dim, ...]


def count(shape: Shape) -> int:
    """Return the number of elements of a shape."""
    total = 1
    for dim in shape:
        total *= dim.value
    return total


def values(shape: Shape) -> tuple[int, ...]:
    """The sizes as numbers."""
    return tuple(dim.value for dim in shape)


def broadcast(a: Shape, b: Shape) -> Shape:
    """The shape of two tensors' sum; `UnfitError` where there is none."""
    if len(a) < len(b):
        a, b = b, a
    joined = list(a[: len(a) - len(b)])
    for one, other in zip(a[len(a) - len(b) :], b, strict=True):
        if one.value != other.value and 1 not in (one.value, other.value):
            raise UnfitError(f"{one.value} against {other.value}")
        joined.append(other if one.value == 1 else one)
    return tuple(joined)


def awkward(rng: random.Random, low: int, high: int) -> int:
    """A size between `low` and `high`: a prime, a power of two, near one, 1, or any."""
    span = range(low, high + 1)
    kind = rng.choices(("prime", "power", "near", "one", "any"), (30, 20, 15, 5, 30))[0]
    found = {
        "prime": [n for n in span if is_prime(n)],
        "power": [n for n in span if n & (n - 1) == 0],
        "near": [n for n in span if (n + 1) & n == 0 or (n - 1) & (n - 2) == 0],
        "one": [1] if low == 1 else [],
    }.get(kind)
    return rng.choice(found or span)


def is_prime(number: int) -> bool:
    """Return True for a prime; for small numbers."""
    return number > 1 and all(number % d for d in range(2, int(number**0.5) + 1))
