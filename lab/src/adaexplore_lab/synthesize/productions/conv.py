"""Convolutions in one to three dimensions: strided, dilated, grouped, depthwise, transposed."""

from __future__ import annotations

from adaexplore_lab.synthesize.draft import MAX_ELEMENTS, Draft, Value
from adaexplore_lab.synthesize.productions.base import production
from adaexplore_lab.synthesize.sizes import Dim, awkward, count

SPATIAL = ("length", "height", "width")


def window(dim: Dim, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> Dim:
    """The size that a sliding window leaves: (n + 2p - d(k - 1) - 1) // s + 1."""
    reach = 2 * padding - dilation * (kernel - 1)
    if stride == 1:
        return dim.plus(reach)
    return dim.plus(reach - 1).over(stride).plus(1)


def _spatial(x: Value, draft: Draft) -> int:
    """Return the number of spatial axes of a value, after batch and channels."""
    draft.require(3 <= x.rank <= 5)
    return x.rank - 2


def _options(**given: int | bool) -> str:
    """Arguments that are not the layer's defaults."""
    defaults = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "output_padding": 0}
    named = [f", {name}={v}" for name, v in given.items() if v != defaults.get(name, True)]
    return "".join(named)


def _groups(draft: Draft, channels: int) -> int:
    """Return a number of groups: mostly one, sometimes the number of channels."""
    divisors = [n for n in range(2, channels) if channels % n == 0]
    kind = draft.rng.choices(("one", "depthwise", "some"), (5, 3, 3))[0]
    if kind == "depthwise":
        return channels
    return draft.rng.choice(divisors) if kind == "some" and divisors else 1


@production("conv")
def _conv(draft: Draft, x: Value) -> Value:
    draft.weighs(x)
    n = _spatial(x, draft)
    channels, sizes = x.shape[1], x.shape[2:]
    kernel = draft.rng.choice((1, 2, 3, 3, 4, 5) if n < 3 else (1, 2, 3))
    stride = draft.rng.choice((1, 1, 1, 2, 3))
    dilation = draft.rng.choice((1, 1, 1, 2))
    padding = draft.rng.choice((0, 1, kernel // 2))
    groups = _groups(draft, channels.value)
    out = tuple(window(dim, kernel, stride, padding, dilation) for dim in sizes)
    draft.require(all(dim.value > 0 for dim in out) and padding <= kernel)
    channels = draft.named(channels)
    to, op = _out_channels(draft, channels, groups)
    weights = to.value * channels.value // groups * kernel**n
    draft.require(weights <= MAX_ELEMENTS)
    draft.afford(weights * x.shape[0].value * count(out))
    grouped = channels.text if groups == channels.value > 1 else groups
    options = _options(stride=stride, padding=padding, dilation=dilation)
    options += f", groups={grouped}" if groups > 1 else ""
    options += _options(bias=draft.chance(0.7))
    layer = draft.layer("conv", f"nn.Conv{n}d({channels.text}, {to.text}, {kernel}{options})")
    shape = (x.shape[0], to, *out)
    return draft.let(x.name, f"{layer}({x.name})", shape, x.dtype, f"{op}conv{n}d")


def _out_channels(draft: Draft, channels: Dim, groups: int) -> tuple[Dim, str]:
    """The channels that come out, and what such a convolution is called."""
    if groups == channels.value > 1:
        return channels.times(draft.rng.choice((1, 1, 2))), "depthwise_"
    if groups > 1:
        factor = draft.rng.randint(1, max(1, 48 // groups))
        return draft.size("out_channels", groups * factor), "grouped_"
    return draft.size("out_channels", awkward(draft.rng, 1, 48)), ""


@production("conv")
def _conv_transposed(draft: Draft, x: Value) -> Value:
    draft.weighs(x)
    n = _spatial(x, draft)
    channels, sizes = x.shape[1], x.shape[2:]
    kernel = draft.rng.choice((2, 3, 4, 5) if n < 3 else (2, 3))
    stride = draft.rng.choice((1, 2, 2, 3) if n < 3 else (1, 2))
    padding = draft.rng.choice((0, 1))
    extra = draft.rng.choice((0, 1)) if stride > 1 else 0
    out = tuple(
        dim.plus(-1).times(stride).plus(kernel - 2 * padding + extra)
        if stride > 1
        else dim.plus(kernel - 1 - 2 * padding)
        for dim in sizes
    )
    channels = draft.named(channels)
    to = draft.size("out_channels", awkward(draft.rng, 1, 32))
    weights = channels.value * to.value * kernel**n
    draft.require(weights <= MAX_ELEMENTS and all(dim.value > 0 for dim in out))
    draft.afford(weights * x.shape[0].value * count(sizes))
    options = _options(stride=stride, padding=padding, output_padding=extra)
    options += _options(bias=draft.chance(0.7))
    code = f"nn.ConvTranspose{n}d({channels.text}, {to.text}, {kernel}{options})"
    layer = draft.layer("deconv", code)
    shape = (x.shape[0], to, *out)
    return draft.let(x.name, f"{layer}({x.name})", shape, x.dtype, f"conv_transpose{n}d")


@production("conv")
def _separable(draft: Draft, x: Value) -> Value:
    """Depthwise, then pointwise."""
    draft.weighs(x)
    n = _spatial(x, draft)
    draft.require(x.shape[1].value > 1)
    channels = draft.named(x.shape[1])
    kernel = draft.rng.choice((3, 5))
    to = draft.size("out_channels", awkward(draft.rng, 2, 48))
    draft.afford(count(x.shape) * (kernel**n + to.value))
    deep = draft.layer(
        "depthwise",
        f"nn.Conv{n}d({channels.text}, {channels.text}, {kernel}, "
        f"padding={kernel // 2}, groups={channels.text})",
    )
    point = draft.layer("pointwise", f"nn.Conv{n}d({channels.text}, {to.text}, 1)")
    shape = (x.shape[0], to, *x.shape[2:])
    code = f"{point}({deep}({x.name}))"
    return draft.let(x.name, code, shape, x.dtype, f"depthwise_conv{n}d", f"conv{n}d")


@production("conv")
def _causal(draft: Draft, x: Value) -> Value:
    """Padded on the left, so that nothing sees what comes after it."""
    draft.weighs(x)
    draft.require(x.rank == 3 and x.shape[1].value > 1)
    channels = draft.named(x.shape[1])
    kernel, dilation = draft.rng.choice((2, 3, 4)), draft.rng.choice((1, 2, 3))
    option = f", dilation={dilation}" if dilation > 1 else ""
    layer = draft.layer(
        "conv",
        f"nn.Conv1d({channels.text}, {channels.text}, {kernel}{option}, groups={channels.text})",
    )
    left = dilation * (kernel - 1)
    code = f"{layer}(F.pad({x.name}, ({left}, 0)))"
    return draft.let(x.name, code, x.shape, x.dtype, "pad", "depthwise_conv1d")
