"""A module in the making: sizes, layers and statements, and what shape every value has."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from adaexplore_lab.synthesize.sizes import Dim, Shape, UnfitError, count

MAX_ELEMENTS = 1 << 18
"""Of every tensor: input, parameter or result."""

MAX_FLOPS = 1 << 28
"""Of every product or convolution; some 10 ms on one core."""

_LONGEST_TEXT = 16
_HALF = ("float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor that `forward` has at hand: how it is called, its shape and dtype."""

    name: str
    shape: Shape
    dtype: str = "float32"

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)


@dataclass
class Draft:
    """A module in the making; productions add to it.

    `dtype` is that of weights and, as a rule, of values. `inputs` are the arguments of `forward`
    with how each is drawn; `statements` pairs of a name and what it becomes; `kept` the values that
    may still be used beside the current one; `ops` the operations in order.
    """

    rng: random.Random
    dtype: str = "float32"
    constants: dict[str, Dim] = field(default_factory=dict)
    layers: list[str] = field(default_factory=list)
    inputs: list[tuple[str, str]] = field(default_factory=list)
    statements: list[tuple[str, str]] = field(default_factory=list)
    kept: list[Value] = field(default_factory=list)
    ops: list[str] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)

    def snapshot(self) -> dict[str, Any]:
        """Return the state that `restore` goes back to."""
        return {name: copy.copy(v) for name, v in vars(self).items() if name != "rng"}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Restore the snapshot; the random numbers continue."""
        for name, value in snapshot.items():
            setattr(self, name, copy.copy(value))

    def require(self, fits: bool) -> None:
        """Raise `UnfitError` unless it fits."""
        if not fits:
            raise UnfitError("it does not fit")

    def afford(self, flops: int) -> None:
        """Raise `UnfitError` for more multiplications than a task may have in one operation."""
        self.require(flops <= MAX_FLOPS)

    def chance(self, p: float) -> bool:
        """True with probability `p`."""
        return self.rng.random() < p

    def size(self, name: str, value: int) -> Dim:
        """A new size under a name of its own at the top of the file."""
        name = self.fresh(name)
        self.constants[name] = Dim.of(value)
        return Dim(value, name)

    def named(self, dim: Dim) -> Dim:
        """The same size as one name or number, for which a constant is made if need be."""
        if dim.is_simple:
            return dim
        for name, known in self.constants.items():
            if known.text == dim.text:
                return Dim(dim.value, name)
        about = re.search(r"[a-z]\w*", dim.text)
        name = self.fresh(f"out_{about[0].removeprefix('out_')}" if about else "size")
        self.constants[name] = dim
        return Dim(dim.value, name)

    def fresh(self, name: str) -> str:
        """`name`, with a number behind it where it is taken."""
        found, number = name, 2
        while found in self._names:
            found, number = f"{name}_{number}", number + 1
        self._names.add(found)
        return found

    def layer(self, attribute: str, code: str) -> str:
        """Add a layer or parameter to the constructor; return its name in `forward`."""
        attribute = self.fresh(attribute)
        self.layers.append(f"self.{attribute} = {code}")
        return f"self.{attribute}"

    def attribute(self, dim: Dim) -> str:
        """Return the text of a size in `forward`: a number, or an attribute."""
        if dim.text.isdigit():
            return dim.text
        dim = self.named(dim)
        line = f"self.{dim.text} = {dim.text}"
        if line not in self.layers:
            self.layers.insert(0, line)
        return f"self.{dim.text}"

    def parameter(self, attribute: str, shape: Shape, scale: str = "") -> Value:
        """A learned tensor of random values."""
        self.require(count(shape) <= MAX_ELEMENTS)
        sizes = ", ".join(d.text for d in self._written(shape))
        drawn = f"torch.randn({sizes})" + (f" * {scale}" if scale else "")
        return Value(self.layer(attribute, f"nn.Parameter({drawn})"), shape, self.dtype)

    def input(
        self, name: str, shape: Shape, *, draw: str = "randn", dtype: str = "", repeats: bool = True
    ) -> Value:
        """A new argument of `forward`, of random numbers; not contiguous now and then.

        With `repeats` it may be the same along an axis, by a stride of 0.
        """
        dtype = dtype or self.dtype
        self.require(count(shape) <= MAX_ELEMENTS)
        name = self.fresh(name)
        shape = tuple(self._written(shape))
        layout = _layout(self.rng, shape, repeats)
        option = "" if dtype == "float32" else f", dtype=torch.{dtype}"
        self.inputs.append((name, _drawn(self.rng, draw, shape, layout, option)))
        return Value(name, shape, dtype)

    def integers(self, name: str, below: Dim, shape: Shape) -> Value:
        """A new argument: integers from 0 up to a size."""
        name = self.fresh(name)
        below = self.named(below)
        sizes = ", ".join(d.text for d in self._written(shape))
        comma = "," if len(shape) == 1 else ""
        self.inputs.append((name, f"torch.randint({below.text}, ({sizes}{comma}))"))
        return Value(name, shape, "int64")

    def mask(self, name: str, shape: Shape) -> Value:
        """A new argument: booleans."""
        name = self.fresh(name)
        sizes = ", ".join(d.text for d in self._written(shape))
        self.inputs.append((name, f"torch.rand({sizes}) < 0.5"))
        return Value(name, shape, "bool")

    def let(self, name: str, code: str, shape: Shape, dtype: str, *ops: str) -> Value:
        """Add a statement; return its value."""
        self.require(count(shape) <= MAX_ELEMENTS)
        self.require(all(dim.value > 0 for dim in shape))
        self._names.add(name)
        self.statements.append((name, code))
        self.kept = [value for value in self.kept if value.name != name]
        self.ops += ops
        return Value(name, shape, dtype)

    def keep(self, value: Value, name: str) -> Value:
        """The value under another name, so that it stays at hand."""
        name = self.fresh(name)
        self.statements.append((name, value.name))
        kept = Value(name, value.shape, value.dtype)
        self.kept.append(kept)
        return kept

    def at_hand(self) -> list[Value]:
        """The kept values that the current one is no longer equal to."""
        last = self.statements[-1][0] if self.statements else ""
        return [value for value in self.kept if value.name != last]

    def weighs(self, x: Value) -> None:
        """Raise `UnfitError` where weights would be of another dtype than `x`."""
        self.require(x.dtype == self.dtype)

    def _written(self, shape: Shape) -> list[Dim]:
        """The sizes as one would write them in a call: what is long gets a name."""
        return [dim if len(dim.text) <= _LONGEST_TEXT else self.named(dim) for dim in shape]


def promoted(a: str, b: str) -> str:
    """The dtype of two floating-point tensors' sum."""
    return a if a == b else "float32"


def is_half(dtype: str) -> bool:
    """True for a 16-bit dtype."""
    return dtype in _HALF


def _layout(rng: random.Random, shape: Shape, repeats: bool) -> str:
    fitting = ["strided", "narrowed"]
    if len(shape) > 1:
        fitting += ["transposed", "transposed"]
    if len(shape) > 2 and repeats:
        fitting += ["expanded"]
    if len(shape) == 4:
        fitting += ["channels-last"]
    return rng.choice(fitting) if shape and rng.random() < 0.35 else "plain"


def _drawn(rng: random.Random, draw: str, shape: Shape, layout: str, option: str) -> str:
    """The expression that draws an input so that it lies in memory as the layout says."""
    sizes = [dim.text for dim in shape]

    def call(sizes: Sequence[str]) -> str:
        return f"torch.{draw}({', '.join(sizes) or '()'}{option})"

    match layout:
        case "strided":
            return f"{call([*sizes[:-1], shape[-1].times(2).text])}[..., ::2]"
        case "narrowed":
            before, after = rng.randint(1, 3), rng.randint(1, 3)
            wide = shape[-1].plus(before + after).text
            return f"{call([*sizes[:-1], wide])}[..., {before}:-{after}]"
        case "transposed":
            i, j = sorted(rng.sample(range(len(shape)), 2))
            sizes[i], sizes[j] = sizes[j], sizes[i]
            return f"{call(sizes)}.transpose({i}, {j})"
        case "expanded":
            axis = rng.randrange(len(shape) - 1)
            whole = ", ".join(sizes[i] if i == axis else "-1" for i in range(len(sizes)))
            sizes[axis] = "1"
            return f"{call(sizes)}.expand({whole})"
        case "channels-last":
            return f"{call(sizes)}.to(memory_format=torch.channels_last)"
    return call(sizes)
