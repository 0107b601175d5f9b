"""Normalization layers, and the same by hand."""

from __future__ import annotations

from adaexplore_lab.synthesize.draft import Draft, Value, is_half
from adaexplore_lab.synthesize.productions.base import axis_of, production, written
from adaexplore_lab.synthesize.sizes import count

_LEAST = 4  # of so few numbers a mean and a variance leave little


@production("norm")
def _layer_norm(draft: Draft, x: Value) -> Value:
    draft.weighs(x)
    axes = draft.rng.choice((1, 1, 1, 2)) if x.rank > 2 else 1
    last = [draft.named(dim) for dim in x.shape[-axes:]]
    draft.require(count(tuple(last)) >= _LEAST)
    sizes = last[0].text if axes == 1 else f"[{', '.join(dim.text for dim in last)}]"
    option = draft.rng.choice(("", "", ", eps=1e-3", ", elementwise_affine=False"))
    layer = draft.layer("norm", f"nn.LayerNorm({sizes}{option})")
    return draft.let(x.name, f"{layer}({x.name})", x.shape, x.dtype, "layer_norm")


@production("norm")
def _rms_norm(draft: Draft, x: Value) -> Value:
    draft.weighs(x)
    draft.require(x.shape[-1].value >= _LEAST)
    features = draft.named(x.shape[-1])
    layer = draft.layer("norm", f"nn.RMSNorm({features.text}, eps=1e-5)")
    return draft.let(x.name, f"{layer}({x.name})", x.shape, x.dtype, "rms_norm")


@production("norm")
def _rms_by_hand(draft: Draft, x: Value) -> Value:
    axis = axis_of(draft, x, _LEAST)
    mean = f"{x.name}.square().mean(dim={written(draft, axis, x.rank)}, keepdim=True)"
    code = f"{x.name} * torch.rsqrt({mean} + 1e-5)"
    return draft.let(x.name, code, x.shape, x.dtype, "square", "mean", "rsqrt", "mul")


@production("norm")
def _standardize(draft: Draft, x: Value) -> Value:
    axis = axis_of(draft, x, _LEAST)
    draft.require(not is_half(x.dtype))
    where = f"dim={written(draft, axis, x.rank)}, keepdim=True"
    code = f"({x.name} - {x.name}.mean({where})) / ({x.name}.std({where}) + 1e-4)"
    return draft.let(x.name, code, x.shape, x.dtype, "mean", "sub", "std", "div")


@production("norm")
def _batch_norm(draft: Draft, x: Value) -> Value:
    draft.weighs(x)
    draft.require(2 <= x.rank <= 5)
    others = x.shape[0].value * count(x.shape[2:])
    draft.require(others >= 2 * _LEAST)
    channels = draft.named(x.shape[1])
    n = max(x.rank - 2, 1)
    layer = draft.layer("norm", f"nn.BatchNorm{n}d({channels.text})")
    return draft.let(x.name, f"{layer}({x.name})", x.shape, x.dtype, f"batch_norm{n}d")


@production("norm")
def _group_norm(draft: Draft, x: Value) -> Value:
    draft.weighs(x)
    draft.require(x.rank >= 3)
    channels = draft.named(x.shape[1])
    divisors = [n for n in range(1, channels.value + 1) if channels.value % n == 0]
    groups = draft.rng.choice(divisors)
    draft.require(channels.value // groups * count(x.shape[2:]) >= 2 * _LEAST)
    layer = draft.layer("norm", f"nn.GroupNorm({groups}, {channels.text})")
    return draft.let(x.name, f"{layer}({x.name})", x.shape, x.dtype, "group_norm")


@production("norm")
def _instance_norm(draft: Draft, x: Value) -> Value:
    draft.weighs(x)
    draft.require(3 <= x.rank <= 5 and count(x.shape[2:]) >= 2 * _LEAST)
    n = x.rank - 2
    channels = draft.named(x.shape[1])
    option = draft.rng.choice(("", ", affine=True"))
    layer = draft.layer("norm", f"nn.InstanceNorm{n}d({channels.text}{option})")
    return draft.let(x.name, f"{layer}({x.name})", x.shape, x.dtype, f"instance_norm{n}d")


@production("norm")
def _normalize(draft: Draft, x: Value) -> Value:
    axis = axis_of(draft, x, least=2)
    p = draft.rng.choice((1, 2, 2))
    option = "p=1, " if p == 1 else ""
    code = f"F.normalize({x.name}, {option}dim={written(draft, axis, x.rank)})"
    return draft.let(x.name, code, x.shape, x.dtype, "normalize")


@production("norm")
def _local_response(draft: Draft, x: Value) -> Value:
    draft.require(x.rank >= 3 and x.shape[1].value >= 2 and not is_half(x.dtype))
    size = draft.rng.choice((2, 3, 5))
    code = f"F.local_response_norm({x.name}.contiguous(), {size})"
    return draft.let(x.name, code, x.shape, x.dtype, "local_response_norm")


@production("softmax")
def _softmax(draft: Draft, x: Value) -> Value:
    axis = written(draft, axis_of(draft, x), x.rank)
    kind = draft.rng.choice(("softmax", "softmax", "log_softmax", "softmin"))
    module = "torch" if kind != "softmin" else "F"
    of = draft.rng.choice((x.name, x.name, f"{x.name} / 0.7"))
    return draft.let(x.name, f"{module}.{kind}({of}, dim={axis})", x.shape, x.dtype, kind)


@production("softmax")
def _softmax_by_hand(draft: Draft, x: Value) -> Value:
    axis = written(draft, axis_of(draft, x), x.rank)
    name = draft.fresh("weights")
    draft.let(
        name, f"torch.exp({x.name} - {x.name}.amax(dim={axis}, keepdim=True))", x.shape, x.dtype
    )
    code = f"{name} / {name}.sum(dim={axis}, keepdim=True)"
    return draft.let(x.name, code, x.shape, x.dtype, "amax", "sub", "exp", "sum", "div")
