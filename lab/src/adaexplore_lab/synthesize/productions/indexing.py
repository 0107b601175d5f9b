"""Moving elements: gather, scatter, embeddings, slices, and other orders of axes."""

from __future__ import annotations

from adaexplore_lab.synthesize.draft import MAX_ELEMENTS, Draft, Value, is_half
from adaexplore_lab.synthesize.productions.base import axis_of, production, replaced, written
from adaexplore_lab.synthesize.sizes import Dim, awkward, count


def _picked(draft: Draft, name: str, high: int = 64) -> Dim:
    return draft.size(name, awkward(draft.rng, 1, high))


@production("indexing")
def _index_select(draft: Draft, x: Value) -> Value:
    axis = axis_of(draft, x)
    number = _picked(draft, "picked")
    index = draft.integers("index", x.shape[axis], (number,))
    shape = replaced(x.shape, axis, number)
    if draft.chance(0.5) and axis < 3:
        code = f"{x.name}[{':, ' * axis}{index.name}]"
    else:
        code = f"torch.index_select({x.name}, {axis}, {index.name})"
    return draft.let(x.name, code, shape, x.dtype, "index_select")


@production("indexing")
def _gather(draft: Draft, x: Value) -> Value:
    axis = axis_of(draft, x)
    shape = replaced(x.shape, axis, _picked(draft, "picked", 32))
    index = draft.integers("index", x.shape[axis], shape)
    call = draft.rng.choice(("torch.gather({}, {}, {})", "{}.gather({}, {})"))
    return draft.let(x.name, call.format(x.name, axis, index.name), shape, x.dtype, "gather")


@production("indexing")
def _pick_per_row(draft: Draft, x: Value) -> Value:
    draft.require(x.rank >= 2 and x.shape[-1].value > 1)
    index = draft.integers("target", x.shape[-1], x.shape[:-1])
    code = f"{x.name}.gather(-1, {index.name}.unsqueeze(-1)).squeeze(-1)"
    return draft.let(x.name, code, x.shape[:-1], x.dtype, "gather")


@production("indexing")
def _scatter_add(draft: Draft, x: Value) -> Value:
    """Rows summed by group."""
    draft.require(x.rank in (1, 2) and not is_half(x.dtype) and x.shape[0].value > 2)
    groups = _picked(draft, "groups", 24)
    index = draft.integers("group", groups, (x.shape[0],))
    shape = (groups, *x.shape[1:])
    rows = draft.attribute(groups)
    sizes = ", ".join([rows, *(f"{x.name}.shape[{i}]" for i in range(1, x.rank))])
    code = f"{x.name}.new_zeros({sizes}).index_add(0, {index.name}, {x.name})"
    return draft.let(x.name, code, shape, x.dtype, "index_add")


@production("indexing")
def _scatter(draft: Draft, x: Value) -> Value:
    draft.require(x.rank >= 2 and not is_half(x.dtype) and x.shape[-1].value > 1)
    bins = _picked(draft, "bins", 32)
    index = draft.integers("bin_index", bins, x.shape)
    how = draft.rng.choice(("add", "reduce"))
    size = draft.attribute(bins)
    zeros = f"{x.name}.new_zeros(*{x.name}.shape[:-1], {size})"
    if how == "add":
        code = f"{zeros}.scatter_add(-1, {index.name}, {x.name})"
    else:
        code = f'{zeros}.scatter_reduce(-1, {index.name}, {x.name}, reduce="amax")'
    return draft.let(x.name, code, (*x.shape[:-1], bins), x.dtype, f"scatter_{how}")


@production("indexing")
def _add_embedding(draft: Draft, x: Value) -> Value:
    """Positions or kinds, looked up in a table and added."""
    draft.weighs(x)
    draft.require(x.rank in (2, 3) and x.shape[-1].value > 1)
    rows = _picked(draft, "vocabulary", 500)
    features = draft.named(x.shape[-1])
    draft.require(rows.value > 1 and rows.value * features.value <= MAX_ELEMENTS)
    table = draft.layer("embedding", f"nn.Embedding({rows.text}, {features.text})")
    index = draft.integers("ids", rows, x.shape[:-1])
    code = f"{x.name} + {table}({index.name})"
    return draft.let(x.name, code, x.shape, x.dtype, "embedding", "add")


@production("indexing")
def _one_hot(draft: Draft, x: Value) -> Value:
    draft.require(x.rank == 2)
    classes = draft.size("classes", awkward(draft.rng, 2, 24))
    index = draft.integers("kind", classes, (x.shape[0],))
    size = draft.attribute(classes)
    code = f"torch.cat([{x.name}, F.one_hot({index.name}, {size}).to({x.name}.dtype)], dim=-1)"
    shape = (
        x.shape[0],
        Dim(x.shape[1].value + classes.value, f"{x.shape[1].text} + {classes.text}"),
    )
    return draft.let(x.name, code, shape, x.dtype, "one_hot", "cat")


@production("indexing")
def _slice(draft: Draft, x: Value) -> Value:
    axis = axis_of(draft, x, least=4)
    dim, front = x.shape[axis], ":, " * axis
    kind = draft.rng.choice(("front", "back", "every-other", "reversed"))
    if kind == "every-other":
        text, out = "::2", dim.plus(1).over(2)
    elif kind == "front":
        out = dim.plus(-draft.rng.choice((1, 2)))
        text = f":-{dim.value - out.value}"
    elif kind == "back":
        out = dim.plus(-draft.rng.choice((1, 3)))
        text = f"{dim.value - out.value}:"
    else:
        code = f"{x.name}.flip({axis})"
        return draft.let(x.name, code, x.shape, x.dtype, "flip")
    code = f"{x.name}[{front}{text}]"
    return draft.let(x.name, code, replaced(x.shape, axis, out), x.dtype, "slice")


@production("indexing")
def _roll(draft: Draft, x: Value) -> Value:
    axis = axis_of(draft, x, least=3)
    shift = draft.rng.choice((1, -1, 2))
    code = f"torch.roll({x.name}, {shift}, dims={axis})"
    return draft.let(x.name, code, x.shape, x.dtype, "roll")


@production("indexing")
def _triangle(draft: Draft, x: Value) -> Value:
    draft.require(x.rank >= 2 and min(dim.value for dim in x.shape[-2:]) >= 3)
    how, diagonal = draft.rng.choice(("tril", "triu")), draft.rng.choice((0, 0, 1, -1))
    option = f", diagonal={diagonal}" if diagonal else ""
    code = f"torch.{how}({x.name}{option})"
    return draft.let(x.name, code, x.shape, x.dtype, how)


@production("indexing")
def _diagonal(draft: Draft, x: Value) -> Value:
    draft.require(x.rank >= 3 and min(dim.value for dim in x.shape[-2:]) >= 2)
    short = min(x.shape[-2:], key=lambda dim: dim.value)
    code = f"{x.name}.diagonal(dim1=-2, dim2=-1)"
    return draft.let(x.name, code, (*x.shape[:-2], short), x.dtype, "diagonal")


@production("layout")
def _transpose(draft: Draft, x: Value) -> Value:
    draft.require(x.rank >= 2)
    i, j = sorted(draft.rng.sample(range(x.rank), 2))
    shape = list(x.shape)
    shape[i], shape[j] = shape[j], shape[i]
    code = f"{x.name}.transpose({i}, {j})" + draft.rng.choice(("", "", ".contiguous()"))
    return draft.let(x.name, code, tuple(shape), x.dtype, "transpose")


@production("layout")
def _permute(draft: Draft, x: Value) -> Value:
    draft.require(x.rank >= 3)
    order = list(range(x.rank))
    draft.rng.shuffle(order)
    draft.require(order != sorted(order))
    code = f"{x.name}.permute({', '.join(map(str, order))})"
    return draft.let(x.name, code, tuple(x.shape[i] for i in order), x.dtype, "permute")


@production("layout")
def _flatten(draft: Draft, x: Value) -> Value:
    draft.require(x.rank >= 3)
    start = draft.rng.choice((1, x.rank - 2, 0))
    end = x.rank - 1 if start else 1
    merged = x.shape[start]
    for dim in x.shape[start + 1 : end + 1]:
        merged = dim.times(merged)
    shape = (*x.shape[:start], merged, *x.shape[end + 1 :])
    code = f"{x.name}.flatten({start}, {end})"
    return draft.let(x.name, code, shape, x.dtype, "flatten")


@production("layout")
def _split(draft: Draft, x: Value) -> Value:
    """An axis as two: groups and what is in each."""
    axis = axis_of(draft, x, least=4)
    size = x.shape[axis].value
    draft.require(x.rank < 5)
    divisors = [n for n in (2, 3, 4, 5, 7, 8) if size % n == 0 and size > n]
    draft.require(bool(divisors))
    groups = draft.rng.choice(divisors)
    code = f"{x.name}.unflatten({axis}, ({groups}, -1))"
    shape = (*x.shape[:axis], Dim.of(groups), x.shape[axis].over(groups), *x.shape[axis + 1 :])
    return draft.let(x.name, code, shape, x.dtype, "unflatten")


@production("layout")
def _channel_shuffle(draft: Draft, x: Value) -> Value:
    draft.require(x.rank == 4)
    groups = draft.rng.choice((2, 3, 4))
    draft.require(x.shape[1].value % groups == 0 and x.shape[1].value > groups)
    code = f"{x.name}.unflatten(1, ({groups}, -1)).transpose(1, 2).flatten(1, 2)"
    return draft.let(x.name, code, x.shape, x.dtype, "channel_shuffle")


@production("layout")
def _repeat(draft: Draft, x: Value) -> Value:
    axis, times = axis_of(draft, x, least=2), draft.rng.choice((2, 3))
    draft.require(count(x.shape) * times <= MAX_ELEMENTS)
    code = f"{x.name}.repeat_interleave({times}, dim={written(draft, axis, x.rank)})"
    shape = replaced(x.shape, axis, x.shape[axis].times(times))
    return draft.let(x.name, code, shape, x.dtype, "repeat_interleave")
