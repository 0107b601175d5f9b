"""Tasks without a model: grown by productions, operation after operation, from a seed."""

from __future__ import annotations

import hashlib
import random

from adaexplore_lab.synthesize import productions
from adaexplore_lab.synthesize.draft import Draft, Value
from adaexplore_lab.synthesize.productions.base import CATALOGUE, ENDINGS, step
from adaexplore_lab.synthesize.render import render
from adaexplore_lab.synthesize.sizes import Dim, Shape, UnfitError, awkward, count, values
from adaexplore_lab.synthesize.task import SyntheticTask

MAX_STEPS = 8
"""Productions of one task; some bring several operations."""

_AXES: dict[int, tuple[tuple[str, int, int], ...]] = {
    1: (("features", 8, 2000),),
    2: (("batch_size", 1, 256), ("features", 2, 600)),
    3: (("batch_size", 1, 16), ("seq_len", 2, 96), ("features", 2, 128)),
    4: (("batch_size", 1, 5), ("channels", 1, 48), ("height", 3, 36), ("width", 3, 36)),
    5: (
        ("batch_size", 1, 3),
        ("channels", 1, 16),
        ("depth", 3, 12),
        ("height", 3, 13),
        ("width", 3, 13),
    ),
}
_RANKS = (1, 2, 3, 4, 5)
_RANK_WEIGHTS = (4, 26, 34, 26, 10)
_DTYPES = ("float32", "float16", "bfloat16")
_DTYPE_WEIGHTS = (70, 15, 15)
_SMALLEST = 32  # elements of the first input

assert productions.__all__  # importing it is what fills the catalogue


def grow(seed: int) -> SyntheticTask:
    """The task of a seed; the same one in every process."""
    rng = random.Random(f"task {seed}")
    while True:
        try:
            return _grown(rng, seed)
        except UnfitError:
            continue  # a dead end: the next attempt draws other numbers


def _grown(rng: random.Random, seed: int) -> SyntheticTask:
    draft = Draft(rng, dtype=rng.choices(_DTYPES, _DTYPE_WEIGHTS)[0])
    x = _first_input(draft)
    families = [family for family in CATALOGUE if family not in ENDINGS]
    for _ in range(rng.choices(range(1, MAX_STEPS + 1), (10, 16, 18, 18, 14, 10, 8, 6))[0]):
        x = step(draft, x, families)
        if draft.chance(0.12):
            draft.keep(x, "skip")
    outputs = _ended(draft, x)
    source = render(draft, outputs)
    return SyntheticTask(
        name=_name(draft.ops, source),
        source=source,
        origin="grammar",
        ops=tuple(draft.ops),
        seed=seed,
        outputs=tuple((values(value.shape), value.dtype) for value in outputs),
    )


def _first_input(draft: Draft) -> Value:
    """A value to begin with: integers to be looked up in a table, or numbers."""
    if draft.chance(0.06):
        return _looked_up(draft)
    rank = draft.rng.choices(_RANKS, _RANK_WEIGHTS)[0]
    shape: Shape = ()
    while count(shape) < _SMALLEST:
        sizes = [awkward(draft.rng, low, high) for _, low, high in _AXES[rank]]
        shape = tuple(map(Dim.of, sizes))
    axes = zip(_AXES[rank], shape, strict=True)
    named = [draft.size(name, dim.value) for (name, _, _), dim in axes]
    draw = draft.rng.choices(("randn", "rand"), (4, 1))[0]
    return draft.input("x", tuple(named), draw=draw, repeats=False)


def _looked_up(draft: Draft) -> Value:
    rows = draft.size("vocabulary", awkward(draft.rng, 3, 1000))
    width = draft.size("features", awkward(draft.rng, 2, 128))
    batch = draft.size("batch_size", awkward(draft.rng, 1, 32))
    length = draft.size("ids_per_sample", awkward(draft.rng, 2, 48))
    ids = draft.integers("ids", rows, (batch, length))
    draft.require(rows.value * width.value <= 1 << 17)
    shape: Shape = (batch, length, width)
    if draft.chance(0.4):
        mode = draft.rng.choice(("sum", "mean", "max"))
        code = f'nn.EmbeddingBag({rows.text}, {width.text}, mode="{mode}")'
        table, shape, op = draft.layer("table", code), (batch, width), "embedding_bag"
    else:
        table = draft.layer("table", f"nn.Embedding({rows.text}, {width.text})")
        op = "embedding"
    return draft.let("x", f"{table}({ids.name})", shape, draft.dtype, op)


def _ended(draft: Draft, x: Value) -> list[Value]:
    """Return the output: the value, a loss of it, or the value with a second output."""
    if draft.chance(0.14):
        before = draft.snapshot()
        try:
            return [step(draft, x, ["loss"])]
        except UnfitError:
            draft.restore(before)
    outputs = [x]
    if draft.chance(0.12):
        before = draft.snapshot()
        try:
            outputs.append(step(draft, x, ["selection"]))
        except UnfitError:
            draft.restore(before)
    if draft.at_hand() and draft.chance(0.15):
        outputs.append(draft.rng.choice(draft.at_hand()))
    return outputs


def _name(ops: list[str], source: str) -> str:
    """Such as `conv2d_group_norm_silu_3f2a91`."""
    told = list(dict.fromkeys(ops))[:3]
    return "_".join([*told, hashlib.sha256(source.encode()).hexdigest()[:6]])
