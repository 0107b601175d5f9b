"""Pooling, padding, resampling, and windows."""

from __future__ import annotations

from adaexplore_lab.synthesize.draft import Draft, Value, is_half
from adaexplore_lab.synthesize.productions.base import axis_of, production, replaced
from adaexplore_lab.synthesize.productions.conv import window
from adaexplore_lab.synthesize.sizes import Dim


def _spatial(draft: Draft, x: Value) -> int:
    draft.require(3 <= x.rank <= 5)
    return x.rank - 2


@production("pooling")
def _pool(draft: Draft, x: Value) -> Value:
    n = _spatial(draft, x)
    kind = draft.rng.choice(("max", "avg"))
    kernel = draft.rng.choice((2, 2, 3, 4))
    stride = draft.rng.choice((kernel, kernel, 1, 2))
    padding = draft.rng.choice((0, 0, kernel // 2))
    if kind == "avg" and n == 3:
        draft.require(not is_half(x.dtype) and all(dim.value >= kernel for dim in x.shape[2:]))
    out = tuple(window(dim, kernel, stride, padding) for dim in x.shape[2:])
    draft.require(all(dim.value > 0 for dim in out))
    options = f", stride={stride}" if stride != kernel else ""
    options += f", padding={padding}" if padding else ""
    if kind == "avg" and padding and draft.chance(0.5):
        options += ", count_include_pad=False"
    code = f"F.{kind}_pool{n}d({x.name}, {kernel}{options})"
    return draft.let(x.name, code, (*x.shape[:2], *out), x.dtype, f"{kind}_pool{n}d")


@production("pooling")
def _adaptive(draft: Draft, x: Value) -> Value:
    n = _spatial(draft, x)
    kind = draft.rng.choice(("avg", "max"))
    size = draft.rng.choice((1, 2, 3, 5))
    draft.require(all(dim.value >= size for dim in x.shape[2:]))
    shape = (*x.shape[:2], *(Dim.of(size) for _ in range(n)))
    code = f"F.adaptive_{kind}_pool{n}d({x.name}, {size})"
    return draft.let(x.name, code, shape, x.dtype, f"adaptive_{kind}_pool{n}d")


@production("pooling")
def _lp_pool(draft: Draft, x: Value) -> Value:
    draft.require(x.rank in (3, 4) and min(dim.value for dim in x.shape[2:]) >= 2)
    n, kernel = x.rank - 2, draft.rng.choice((2, 3))
    out = tuple(window(dim, kernel, kernel) for dim in x.shape[2:])
    draft.require(all(dim.value > 0 for dim in out))
    code = f"F.lp_pool{n}d({x.name}, 2.0, {kernel})"
    return draft.let(x.name, code, (*x.shape[:2], *out), x.dtype, f"lp_pool{n}d")


@production("resampling")
def _pad(draft: Draft, x: Value) -> Value:
    _spatial(draft, x)
    mode = draft.rng.choice(("constant", "reflect", "replicate", "circular"))
    before, after = draft.rng.randint(0, 3), draft.rng.randint(1, 4)
    draft.require(x.shape[-1].value > max(before, after))
    both = x.rank >= 4 and mode == "constant"
    amounts = [before, after] + ([1, 2] if both else [])
    if x.rank > 3 and mode != "constant":
        amounts = [before, after, 1, 1, *([1, 1] if x.rank == 5 else [])]
        draft.require(all(dim.value > 1 for dim in x.shape[2:]))
    option = f', mode="{mode}"' if mode != "constant" else ", value=0.5"
    shape = list(x.shape)
    for i in range(len(amounts) // 2):
        shape[-1 - i] = shape[-1 - i].plus(amounts[2 * i] + amounts[2 * i + 1])
    code = f"F.pad({x.name}, ({', '.join(map(str, amounts))}){option})"
    return draft.let(x.name, code, tuple(shape), x.dtype, f"pad_{mode}")


@production("resampling")
def _interpolate(draft: Draft, x: Value) -> Value:
    n = _spatial(draft, x)
    modes = ["nearest", ("linear", "bilinear", "trilinear")[n - 1], *(["bicubic"] * (n == 2))]
    mode = draft.rng.choice(modes)
    factor = draft.rng.choice((2, 3) if n < 3 else (2,))
    shape = (*x.shape[:2], *(dim.times(factor) for dim in x.shape[2:]))
    option = f', mode="{mode}"'
    if mode != "nearest":
        option += f", align_corners={draft.chance(0.5)}"
    code = f"F.interpolate({x.name}, scale_factor={factor}{option})"
    return draft.let(x.name, code, shape, x.dtype, f"interpolate_{mode}")


@production("resampling")
def _pixel_shuffle(draft: Draft, x: Value) -> Value:
    draft.require(x.rank == 4)
    batch, channels, height, width = x.shape
    factor = draft.rng.choice((2, 3))
    if draft.chance(0.5):
        draft.require(channels.value % factor**2 == 0)
        shape = (batch, channels.over(factor**2), height.times(factor), width.times(factor))
        code = f"F.pixel_shuffle({x.name}, {factor})"
        return draft.let(x.name, code, shape, x.dtype, "pixel_shuffle")
    draft.require(height.value % factor == 0 and width.value % factor == 0)
    shape = (batch, channels.times(factor**2), height.over(factor), width.over(factor))
    code = f"F.pixel_unshuffle({x.name}, {factor})"
    return draft.let(x.name, code, shape, x.dtype, "pixel_unshuffle")


@production("resampling")
def _im2col(draft: Draft, x: Value) -> Value:
    draft.require(x.rank == 4)
    batch, channels, height, width = x.shape
    kernel = draft.rng.choice((2, 3))
    rows, columns = window(height, kernel), window(width, kernel)
    draft.require(rows.value > 0 and columns.value > 0)
    shape = (batch, channels.times(kernel**2), rows.times(columns))
    return draft.let(x.name, f"F.unfold({x.name}, {kernel})", shape, x.dtype, "im2col")


@production("resampling")
def _sliding(draft: Draft, x: Value) -> Value:
    """Overlapping windows along an axis, each reduced."""
    axis = axis_of(draft, x, least=4)
    size, stride = draft.rng.choice((2, 3, 4)), draft.rng.choice((1, 2))
    shape = replaced(x.shape, axis, window(x.shape[axis], size, stride))
    how = draft.rng.choice(("mean", "amax", "sum", "amin"))
    draft.require(how != "sum" or not is_half(x.dtype))
    code = f"{x.name}.unfold({axis}, {size}, {stride}).{how}(dim=-1)"
    return draft.let(x.name, code, shape, x.dtype, "unfold", how)
