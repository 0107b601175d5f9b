"""Reductions over one axis or several, and what is chosen rather than summed."""

from __future__ import annotations

from adaexplore_lab.synthesize.draft import Draft, Value, is_half
from adaexplore_lab.synthesize.productions.base import (
    axis_of,
    production,
    register,
    replaced,
    without,
    written,
)
from adaexplore_lab.synthesize.sizes import Dim

_FORMS = {
    "sum": ("{x}.sum(dim={d}{k})", "torch.sum({x}, dim={d}{k})"),
    "mean": ("{x}.mean(dim={d}{k})",),
    "amax": ("{x}.amax(dim={d}{k})", "torch.max({x}, dim={d}{k}).values"),
    "amin": ("{x}.amin(dim={d}{k})", "torch.min({x}, dim={d}{k}).values"),
    "var": ("{x}.var(dim={d}{k})", "torch.var({x}, dim={d}, correction=0{k})"),
    "std": ("{x}.std(dim={d}{k})",),
    "norm": ("torch.linalg.vector_norm({x}, dim={d}{k})", "{x}.norm(p=1, dim={d}{k})"),
    "prod": ("(1 + 0.1 * torch.tanh({x})).prod(dim={d}{k})",),
    "logsumexp": ("torch.logsumexp({x}, dim={d}{k})",),
    "median": ("{x}.median(dim={d}{k}).values",),
    "sum_of_squares": ("{x}.square().sum(dim={d}{k})",),
}


def _reduction(name: str, forms: tuple[str, ...]) -> None:
    def grow(draft: Draft, x: Value) -> Value:
        draft.require(x.rank > 1 and not (is_half(x.dtype) and name in ("var", "std", "prod")))
        axis = axis_of(draft, x, least=3)
        keepdim = x.rank > 2 and draft.chance(0.2)
        code = draft.rng.choice(forms).format(
            x=x.name, d=written(draft, axis, x.rank), k=", keepdim=True" if keepdim else ""
        )
        shape = without(x.shape, axis, keepdim=keepdim)
        return draft.let(x.name, code, shape, x.dtype, name)

    register("reduction", name, grow)


for _name, _forms in _FORMS.items():
    _reduction(_name, _forms)


@production("reduction")
def _over_several(draft: Draft, x: Value) -> Value:
    draft.require(x.rank >= 3)
    first = draft.rng.choice((1, 2) if x.rank > 3 else (1,))
    draft.require(any(dim.value > 2 for dim in x.shape[first:]))
    axes = ", ".join(map(str, range(first, x.rank)))
    how = draft.rng.choice(("mean", "amax", "sum"))
    draft.require(how != "sum" or not is_half(x.dtype))
    code = f"{x.name}.{how}(dim=({axes}))"
    return draft.let(x.name, code, x.shape[:first], x.dtype, how)


@production("reduction")
def _weighted_mean(draft: Draft, x: Value) -> Value:
    draft.require(x.rank >= 2)
    axis = axis_of(draft, x, least=3)
    draft.require(axis == x.rank - 2 or x.rank == 2)
    sizes = x.shape[:-1] if axis == x.rank - 2 else x.shape
    weights = draft.input("weights", sizes, draw="rand", dtype=x.dtype)
    shown = f"{weights.name}.unsqueeze(-1)" if axis == x.rank - 2 else weights.name
    summed = f"{weights.name}.sum(dim=-1" + (", keepdim=True)" if axis == x.rank - 2 else ")")
    code = f"({x.name} * {shown}).sum(dim={axis}) / ({summed} + 0.1)"
    return draft.let(x.name, code, without(x.shape, axis), x.dtype, "mul", "sum", "div")


@production("reduction")
def _topk(draft: Draft, x: Value) -> Value:
    axis = axis_of(draft, x, least=5)
    k = draft.rng.choice([n for n in (1, 2, 3, 4) if n < x.shape[axis].value])
    code = f"{x.name}.topk({k}, dim={written(draft, axis, x.rank)}).values"
    return draft.let(x.name, code, replaced(x.shape, axis, Dim.of(k)), x.dtype, "topk")


@production("reduction")
def _sort(draft: Draft, x: Value) -> Value:
    axis = axis_of(draft, x, least=3)
    option = draft.rng.choice(("", ", descending=True"))
    code = f"torch.sort({x.name}, dim={written(draft, axis, x.rank)}{option}).values"
    return draft.let(x.name, code, x.shape, x.dtype, "sort")


@production("reduction")
def _cosine_similarity(draft: Draft, x: Value) -> Value:
    draft.require(x.rank >= 2 and x.shape[-1].value >= 3)
    y = draft.input("y", x.shape, dtype=x.dtype)
    code = f"F.cosine_similarity({x.name}, {y.name}, dim=-1)"
    return draft.let(x.name, code, x.shape[:-1], x.dtype, "cosine_similarity")


@production("reduction")
def _distances(draft: Draft, x: Value) -> Value:
    """All pairs of rows."""
    draft.require(x.rank in (2, 3) and not is_half(x.dtype) and x.shape[-1].value > 1)
    others = draft.size("centers", draft.rng.choice((3, 7, 16, 29)))
    y = draft.input("centers_at", (others, x.shape[-1]), dtype=x.dtype)
    shape = (*x.shape[:-1], others)
    if draft.chance(0.5):
        draft.require(x.rank == 2)
        return draft.let(x.name, f"torch.cdist({x.name}, {y.name})", shape, x.dtype, "cdist")
    code = f"({x.name}.unsqueeze(-2) - {y.name}).abs().sum(dim=-1)"
    draft.afford(x.shape[-1].value * others.value * 1000)
    return draft.let(x.name, code, shape, x.dtype, "sub", "abs", "sum")


@production("selection")
def _argmax(draft: Draft, x: Value) -> Value:
    draft.require(x.rank > 1)
    axis = axis_of(draft, x, least=3)
    how = draft.rng.choice(("argmax", "argmin"))
    code = f"{x.name}.{how}(dim={written(draft, axis, x.rank)})"
    return draft.let("best", code, without(x.shape, axis), "int64", how)


@production("selection")
def _largest(draft: Draft, x: Value) -> Value:
    axis = axis_of(draft, x, least=5)
    code = f"{x.name}.topk(2, dim={written(draft, axis, x.rank)}).indices"
    return draft.let("chosen", code, replaced(x.shape, axis, Dim.of(2)), "int64", "topk")
