"""Attention and its pieces, for values read as batch, sequence and features."""

from __future__ import annotations

from adaexplore_lab.synthesize.draft import Draft, Value, is_half, promoted
from adaexplore_lab.synthesize.productions.base import production
from adaexplore_lab.synthesize.productions.matmul import linear
from adaexplore_lab.synthesize.sizes import Dim, awkward, count


def _sequence(draft: Draft, x: Value) -> tuple[Dim, Dim, Dim]:
    draft.require(x.rank == 3 and x.shape[1].value > 1 and x.shape[2].value > 3)
    batch, length, features = x.shape
    draft.require(length.value <= 160 and features.value <= 160)
    return batch, length, features


def _heads(draft: Draft, features: Dim) -> int:
    divisors = [n for n in (1, 2, 3, 4, 5, 8) if features.value % n == 0 and features.value > n]
    return draft.rng.choice(divisors)


@production("attention")
def _single_head(draft: Draft, x: Value) -> Value:
    batch, length, features = _sequence(draft, x)
    draft.weighs(x)
    draft.afford(count(x.shape) * (3 * features.value + 2 * length.value))
    q = linear(draft, "query", features, features, bias=False)
    k = linear(draft, "key", features, features, bias=False)
    v = linear(draft, "value", features, features)
    name = draft.fresh("scores")
    scale = f"{features.value**-0.5:.4g}"
    code = f"{q}({x.name}) @ {k}({x.name}).transpose(1, 2) * {scale}"
    draft.let(name, code, (batch, length, length), x.dtype, "linear", "linear", "bmm")
    if draft.chance(0.5):
        code = (
            f'{name}.masked_fill(torch.ones_like({name}, dtype=torch.bool).triu(1), float("-inf"))'
        )
        draft.let(name, code, (batch, length, length), x.dtype, "masked_fill")
    code = f"torch.softmax({name}, dim=-1) @ {v}({x.name})"
    return draft.let(x.name, code, x.shape, x.dtype, "softmax", "linear", "bmm")


@production("attention")
def _fused_heads(draft: Draft, x: Value) -> Value:
    batch, length, features = _sequence(draft, x)
    draft.weighs(x)
    heads = _heads(draft, features)
    draft.afford(count(x.shape) * (3 * features.value + 2 * length.value))
    layer = linear(draft, "qkv", features, features.times(3), bias=draft.chance(0.3))
    inner = (batch, Dim.of(heads), length, features.over(heads))
    names = [draft.fresh(name) for name in ("q", "k", "v")]
    draft.statements.append((", ".join(names), f"{layer}({x.name}).chunk(3, dim=-1)"))
    draft.ops += ["linear", "chunk"]
    for name in names:
        draft.let(name, f"{name}.unflatten(-1, ({heads}, -1)).transpose(1, 2)", inner, x.dtype)
    option = draft.rng.choice(("", ", is_causal=True"))
    code = f"F.scaled_dot_product_attention({', '.join(names)}{option})"
    code += ".transpose(1, 2).flatten(2)"
    return draft.let(x.name, code, x.shape, x.dtype, "attention", "transpose", "flatten")


@production("attention")
def _cross(draft: Draft, x: Value) -> Value:
    """Queries of one sequence, keys and values of another."""
    batch, length, features = _sequence(draft, x)
    other = draft.size("memory_len", awkward(draft.rng, 2, 80))
    draft.afford(count(x.shape) * 2 * other.value)
    keys = draft.input("keys", (batch, other, features), dtype=x.dtype)
    to = draft.size("value_features", awkward(draft.rng, 2, 64))
    contents = draft.input("contents", (batch, other, to), dtype=x.dtype)
    scale = f"{features.value**0.5:.4g}"
    code = (
        f"torch.softmax({x.name} @ {keys.name}.transpose(1, 2) / {scale}, dim=-1) @ {contents.name}"
    )
    return draft.let(x.name, code, (batch, length, to), x.dtype, "bmm", "softmax", "bmm")


@production("attention")
def _linear_attention(draft: Draft, x: Value) -> Value:
    """Without softmax: keys and values are summed first."""
    batch, _, features = _sequence(draft, x)
    draft.require(not is_half(x.dtype))
    draft.afford(count(x.shape) * 2 * features.value)
    contents = draft.input("contents", x.shape, dtype=x.dtype)
    q = draft.fresh("q")
    draft.let(q, f"F.elu({x.name}) + 1", x.shape, x.dtype, "elu", "add")
    state = draft.fresh("state")
    shape = (batch, features, features)
    draft.let(state, f"{q}.transpose(1, 2) @ {contents.name}", shape, x.dtype, "bmm")
    code = f"{q} @ {state} / ({q} @ {q}.sum(dim=1, keepdim=True).transpose(1, 2))"
    return draft.let(x.name, code, x.shape, x.dtype, "bmm", "sum", "bmm", "div")


@production("attention")
def _rotary(draft: Draft, x: Value) -> Value:
    """Rotary position embedding: pairs of features, turned by angles that grow with the place."""
    _, length, features = _sequence(draft, x)
    draft.require(features.value % 2 == 0)
    half = features.over(2)
    angles = draft.input("angles", (length, half), draw="rand", dtype=x.dtype)
    a, b = draft.fresh("a"), draft.fresh("b")
    draft.statements.append((f"{a}, {b}", f"{x.name}.chunk(2, dim=-1)"))
    cos, sin = draft.fresh("cos"), draft.fresh("sin")
    draft.let(cos, f"torch.cos({angles.name})", (length, half), x.dtype, "chunk", "cos")
    draft.let(sin, f"torch.sin({angles.name})", (length, half), x.dtype, "sin")
    code = f"torch.cat([{a} * {cos} - {b} * {sin}, {a} * {sin} + {b} * {cos}], dim=-1)"
    return draft.let(x.name, code, x.shape, x.dtype, "mul", "sub", "add", "cat")


@production("attention")
def _distance_bias(draft: Draft, x: Value) -> Value:
    """Scores that fall with the distance of two places, and a softmax."""
    draft.require(x.rank >= 2 and x.shape[-1].value == x.shape[-2].value > 2)
    place = draft.fresh("place")
    length = x.shape[-1]
    draft.let(
        place, f"torch.arange({x.name}.shape[-1], device={x.name}.device)", (length,), "int64"
    )
    code = f"torch.softmax({x.name} - 0.1 * ({place}[:, None] - {place}).abs(), dim=-1)"
    dtype = promoted(x.dtype, "float32")
    return draft.let(x.name, code, x.shape, dtype, "arange", "sub", "abs", "softmax")


@production("attention")
def _router(draft: Draft, x: Value) -> Value:
    """A few of several experts for each row, and their weights."""
    draft.weighs(x)
    draft.require(x.rank in (2, 3) and x.shape[-1].value > 3)
    experts = draft.size("experts", awkward(draft.rng, 5, 64))
    layer = linear(draft, "router", x.shape[-1], experts, bias=False)
    chosen = draft.rng.choice((2, 3, 4))
    name = draft.fresh("weights")
    shape = (*x.shape[:-1], Dim.of(chosen))
    code = f"torch.softmax({layer}({x.name}), dim=-1).topk({chosen}, dim=-1).values"
    draft.let(name, code, shape, x.dtype, "linear", "softmax", "topk")
    code = f"{name} / {name}.sum(dim=-1, keepdim=True)"
    return draft.let(x.name, code, shape, x.dtype, "sum", "div")


@production("attention")
def _pooled(draft: Draft, x: Value) -> Value:
    """A mean over the sequence, weighted by what a layer thinks of each place."""
    batch, _, features = _sequence(draft, x)
    draft.weighs(x)
    layer = linear(draft, "score", features, Dim.of(1), bias=False)
    code = f"(torch.softmax({layer}({x.name}), dim=1) * {x.name}).sum(dim=1)"
    return draft.let(x.name, code, (batch, features), x.dtype, "linear", "softmax", "mul", "sum")
