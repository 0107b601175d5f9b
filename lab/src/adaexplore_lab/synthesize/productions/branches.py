"""Two ways from one value and back together: residuals, gates, concatenation, ensembles."""

from __future__ import annotations

from adaexplore_lab.synthesize.draft import Draft, Value, promoted
from adaexplore_lab.synthesize.productions.base import (
    SHAPE_KEEPING,
    axis_of,
    production,
    replaced,
    step,
)
from adaexplore_lab.synthesize.sizes import Dim, values


def _steps(draft: Draft, x: Value) -> Value:
    for _ in range(draft.rng.choice((1, 2))):
        x = step(draft, x, SHAPE_KEEPING, same_shape=True)
    return x


@production("branch")
def _residual(draft: Draft, x: Value) -> Value:
    kept = draft.keep(x, draft.rng.choice(("residual", "skip", "shortcut")))
    x = _steps(draft, x)
    scale = draft.rng.choice(("", "", "0.5 * "))
    code = f"{kept.name} + {scale}{x.name}"
    return draft.let(x.name, code, x.shape, x.dtype, "add")


@production("branch")
def _gated_branch(draft: Draft, x: Value) -> Value:
    kept = draft.keep(x, "gate")
    x = _steps(draft, x)
    act = draft.rng.choice(("torch.sigmoid", "torch.tanh", "F.silu"))
    code = f"{act}({kept.name}) * {x.name}"
    return draft.let(x.name, code, x.shape, x.dtype, act.rpartition(".")[2], "mul")


@production("branch")
def _concatenate(draft: Draft, x: Value) -> Value:
    kept = draft.keep(x, "left")
    x = _steps(draft, x)
    axis = axis_of(draft, x, least=1, first=min(1, x.rank - 1))
    shape = replaced(x.shape, axis, x.shape[axis].times(2))
    code = f"torch.cat([{kept.name}, {x.name}], dim={axis})"
    return draft.let(x.name, code, shape, x.dtype, "cat")


@production("branch")
def _stack(draft: Draft, x: Value) -> Value:
    draft.require(x.rank < 5)
    kept = draft.keep(x, "first")
    x = _steps(draft, x)
    axis = draft.rng.choice((0, 1))
    shape = (*x.shape[:axis], Dim.of(2), *x.shape[axis:])
    code = f"torch.stack([{kept.name}, {x.name}], dim={axis})"
    return draft.let(x.name, code, shape, x.dtype, "stack")


@production("branch")
def _join_input(draft: Draft, x: Value) -> Value:
    axis = axis_of(draft, x, least=1, first=min(1, x.rank - 1))
    more = draft.size("extra", draft.rng.choice((1, 3, 8, 13)))
    y = draft.input("y", replaced(x.shape, axis, more), dtype=x.dtype)
    total = Dim(x.shape[axis].value + more.value, f"{x.shape[axis].text} + {more.text}")
    code = f"torch.cat([{x.name}, {y.name}], dim={axis})"
    return draft.let(x.name, code, replaced(x.shape, axis, total), x.dtype, "cat")


@production("branch")
def _halves(draft: Draft, x: Value) -> Value:
    """The two halves of an axis, multiplied."""
    axis = axis_of(draft, x)
    draft.require(x.shape[axis].value % 2 == 0)
    a, b = draft.fresh("a"), draft.fresh("b")
    draft.statements.append((f"{a}, {b}", f"{x.name}.chunk(2, dim={axis})"))
    act = draft.rng.choice(("torch.sigmoid", "F.silu", "F.gelu", "torch.tanh", "torch.relu"))
    shape = replaced(x.shape, axis, x.shape[axis].over(2))
    code = f"{a} * {act}({b})"
    return draft.let(x.name, code, shape, x.dtype, "chunk", act.rpartition(".")[2], "mul")


@production("branch")
def _with_kept(draft: Draft, x: Value) -> Value:
    same = [v for v in draft.at_hand() if values(v.shape) == values(x.shape)]
    draft.require(bool(same))
    y = draft.rng.choice(same)
    code = f"{x.name} {draft.rng.choice('+-*')} {y.name}"
    return draft.let(x.name, code, x.shape, promoted(x.dtype, y.dtype), "add")


@production("gate")
def _squeeze_excite(draft: Draft, x: Value) -> Value:
    """Channels weighed by what two small layers make of their means."""
    draft.weighs(x)
    draft.require(x.rank == 4 and x.shape[1].value > 3)
    channels = draft.named(x.shape[1])
    squeezed = draft.size("squeezed", max(2, channels.value // 4))
    down = draft.layer("squeeze", f"nn.Linear({channels.text}, {squeezed.text})")
    up = draft.layer("excite", f"nn.Linear({squeezed.text}, {channels.text})")
    name = draft.fresh("gate")
    code = f"torch.sigmoid({up}(torch.relu({down}({x.name}.mean(dim=(2, 3))))))"
    draft.let(name, code, x.shape[:2], x.dtype, "mean", "linear", "relu", "linear", "sigmoid")
    code = f"{x.name} * {name}[:, :, None, None]"
    return draft.let(x.name, code, x.shape, x.dtype, "mul")


@production("gate")
def _self_gate(draft: Draft, x: Value) -> Value:
    """Weighed by a summary of itself along an axis."""
    axis = axis_of(draft, x)
    summary = draft.rng.choice(("mean", "amax"))
    code = f"{x.name} * torch.sigmoid({x.name}.{summary}(dim={axis}, keepdim=True))"
    return draft.let(x.name, code, x.shape, x.dtype, summary, "sigmoid", "mul")
