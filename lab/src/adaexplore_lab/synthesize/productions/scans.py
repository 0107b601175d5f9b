"""Scans along an axis: sums, products and maxima so far, and recurrences."""

from __future__ import annotations

from adaexplore_lab.synthesize.draft import Draft, Value, is_half
from adaexplore_lab.synthesize.productions.base import (
    axis_of,
    production,
    register,
    replaced,
    written,
)

_FORMS = {
    "cumsum": ("torch.cumsum({x}, dim={d})", "{x}.cumsum(dim={d}) / {n}"),
    "cumprod": (
        "torch.cumprod(1 + 0.1 * torch.tanh({x}), dim={d})",
        "torch.sigmoid({x} + 3).cumprod(dim={d})",
    ),
    "cummax": ("torch.cummax({x}, dim={d}).values",),
    "cummin": ("{x}.cummin(dim={d}).values",),
    "logcumsumexp": ("torch.logcumsumexp({x}, dim={d})",),
    "reverse_cumsum": ("{x}.flip({d}).cumsum(dim={d}).flip({d})",),
    "exclusive_cumsum": ("{x}.cumsum(dim={d}) - {x}",),
    "running_mean_square": ("{x}.square().cumsum(dim={d}) / {n}",),
}


def _scan(name: str, forms: tuple[str, ...]) -> None:
    def grow(draft: Draft, x: Value) -> Value:
        draft.require(not is_half(x.dtype) or name in ("cummax", "cummin"))
        axis = axis_of(draft, x, least=3)
        where = written(draft, axis, x.rank)
        code = draft.rng.choice(forms).format(x=x.name, d=where, n=f"{x.name}.shape[{where}]")
        return draft.let(x.name, code, x.shape, x.dtype, name)

    register("scan", name, grow)


for _name, _forms in _FORMS.items():
    _scan(_name, _forms)


@production("scan")
def _diff(draft: Draft, x: Value) -> Value:
    axis = axis_of(draft, x, least=3)
    shape = replaced(x.shape, axis, x.shape[axis].plus(-1))
    code = f"torch.diff({x.name}, dim={written(draft, axis, x.rank)})"
    return draft.let(x.name, code, shape, x.dtype, "diff")


@production("scan")
def _masked_scan(draft: Draft, x: Value) -> Value:
    axis = axis_of(draft, x, least=3)
    draft.require(not is_half(x.dtype))
    mask = draft.mask("mask", x.shape)
    code = f"torch.cumsum({x.name} * {mask.name}, dim={written(draft, axis, x.rank)})"
    return draft.let(x.name, code, x.shape, x.dtype, "mul", "cumsum")


@production("scan")
def _gated(draft: Draft, x: Value) -> Value:
    """A linear recurrence in closed form: the sum of what came before, each decayed since."""
    draft.require(x.rank == 3 and not is_half(x.dtype) and 3 <= x.shape[1].value <= 64)
    decay = draft.let(
        draft.fresh("decay"),
        f"torch.cumsum(F.logsigmoid({x.name} + 2), dim=1)",
        x.shape,
        x.dtype,
        "logsigmoid",
        "cumsum",
    )
    code = f"torch.exp({decay.name}) * torch.cumsum({x.name} * torch.exp(-{decay.name}), dim=1)"
    return draft.let(x.name, code, x.shape, x.dtype, "exp", "cumsum", "mul")


@production("scan")
def _smoothed(draft: Draft, x: Value) -> Value:
    """An exponential moving average, step by step."""
    draft.require(x.rank == 3 and 3 <= x.shape[1].value <= 12)
    state, states = draft.fresh("state"), draft.fresh("states")
    draft.let(state, f"{x.name}[:, 0]", (x.shape[0], x.shape[2]), x.dtype)
    draft.let(states, f"[{state}]", x.shape, x.dtype)
    draft.statements.append(
        (
            "",
            f"for step in range(1, {x.name}.shape[1]):\n"
            f"    {state} = 0.8 * {state} + 0.2 * {x.name}[:, step]\n"
            f"    {states}.append({state})",
        )
    )
    return draft.let(x.name, f"torch.stack({states}, dim=1)", x.shape, x.dtype, "recurrence")
