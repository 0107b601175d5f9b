"""Products: linear layers, matrices, batches of them, einsum."""

from __future__ import annotations

from adaexplore_lab.synthesize.draft import MAX_ELEMENTS, Draft, Value
from adaexplore_lab.synthesize.productions.base import production
from adaexplore_lab.synthesize.sizes import Dim, awkward, count


def width(draft: Draft, name: str = "hidden", high: int = 192) -> Dim:
    """A new size for the result of a product."""
    return draft.size(name, awkward(draft.rng, 2, high))


def linear(draft: Draft, attribute: str, features: Dim, out: Dim, *, bias: bool = True) -> str:
    """A linear layer; how `forward` calls it."""
    draft.require(features.value * out.value <= MAX_ELEMENTS)
    features, out = draft.named(features), draft.named(out)
    option = "" if bias else ", bias=False"
    return draft.layer(attribute, f"nn.Linear({features.text}, {out.text}{option})")


@production("linear")
def _linear(draft: Draft, x: Value) -> Value:
    draft.weighs(x)
    same = draft.chance(0.4)
    out = x.shape[-1] if same else width(draft)
    draft.require(x.shape[-1].value > 1)
    draft.afford(count(x.shape) * out.value)
    name = draft.rng.choice(("proj", "linear", "fc"))
    layer = linear(draft, name, x.shape[-1], out, bias=draft.chance(0.7))
    return draft.let(x.name, f"{layer}({x.name})", (*x.shape[:-1], out), x.dtype, "linear")


@production("linear")
def _low_rank(draft: Draft, x: Value) -> Value:
    draft.weighs(x)
    draft.require(x.shape[-1].value > 8)
    rank = draft.size("low_rank", awkward(draft.rng, 2, 16))
    out = width(draft)
    draft.afford(count(x.shape) * rank.value * 2)
    down = linear(draft, "down", x.shape[-1], rank, bias=False)
    up = linear(draft, "up", rank, out, bias=draft.chance(0.5))
    return draft.let(
        x.name, f"{up}({down}({x.name}))", (*x.shape[:-1], out), x.dtype, "linear", "linear"
    )


@production("linear")
def _swiglu(draft: Draft, x: Value) -> Value:
    draft.weighs(x)
    draft.require(x.shape[-1].value > 1)
    hidden = width(draft)
    draft.afford(count(x.shape) * hidden.value * 3)
    gate = linear(draft, "gate", x.shape[-1], hidden, bias=False)
    up = linear(draft, "up", x.shape[-1], hidden, bias=False)
    down = linear(draft, "down", hidden, x.shape[-1], bias=False)
    act = draft.rng.choice(("F.silu", "F.gelu", "torch.sigmoid", "torch.relu"))
    code = f"{down}({act}({gate}({x.name})) * {up}({x.name}))"
    return draft.let(
        x.name, code, x.shape, x.dtype, "linear", act.rpartition(".")[2], "mul", "linear"
    )


@production("matmul")
def _weight_input(draft: Draft, x: Value) -> Value:
    inner, out = x.shape[-1], width(draft, "columns")
    draft.require(inner.value > 1)
    draft.afford(count(x.shape) * out.value)
    code = f"{x.name} @ "
    if draft.chance(0.5):
        weight = draft.input("weight", (inner, out), dtype=x.dtype)
        code += weight.name
    else:
        weight = draft.input("weight", (out, inner), dtype=x.dtype)
        code += draft.rng.choice((f"{weight.name}.T", f"{weight.name}.mT"))
    if draft.chance(0.4):
        code = f"F.linear({x.name}, {weight.name}{'' if '.' in code.split('@')[1] else '.T'})"
    return draft.let(x.name, code, (*x.shape[:-1], out), x.dtype, "matmul")


@production("matmul")
def _gram(draft: Draft, x: Value) -> Value:
    draft.require(x.rank >= 2 and x.shape[-2].value > 1)
    rows, inner = x.shape[-2:]
    draft.afford(count(x.shape) * rows.value)
    code = f"{x.name} @ {x.name}.transpose(-2, -1) / {inner.value**0.5:.3g}"
    return draft.let(x.name, code, (*x.shape[:-2], rows, rows), x.dtype, "matmul", "scale")


@production("matmul")
def _bmm(draft: Draft, x: Value) -> Value:
    draft.require(x.rank == 3 and x.shape[-1].value > 1)
    batch, rows, inner = x.shape
    out = width(draft, "columns", 96)
    draft.afford(count(x.shape) * out.value)
    shape = (batch, rows, out)
    if draft.chance(0.25):
        bias = draft.input("bias", (Dim.of(1), rows, out), dtype=x.dtype)
        y = draft.input("y", (batch, inner, out), dtype=x.dtype)
        code = f"torch.baddbmm({bias.name}, {x.name}, {y.name}, beta=0.5)"
        return draft.let(x.name, code, shape, x.dtype, "baddbmm")
    if draft.chance(0.5):
        y = draft.input("y", (batch, inner, out), dtype=x.dtype)
        code = f"torch.bmm({x.name}, {y.name})"
    else:
        y = draft.input("y", (batch, out, inner), dtype=x.dtype)
        code = f"torch.bmm({x.name}, {y.name}.transpose(1, 2))"
    return draft.let(x.name, code, shape, x.dtype, "bmm")


_CONTRACTIONS = {
    2: ("bd,de->be", "bd,bd->b", "bd,be->bde", "bd,cd->bc", "bd,be->de"),
    3: (
        "bsd,de->bse",
        "bsd,btd->bst",
        "bsd,bse->bde",
        "bsd,sde->bse",
        "bsd,bd->bs",
        "bsd,bs->bd",
        "bsd,ds->bs",
    ),
    4: ("bhsd,bhtd->bhst", "bchw,ce->behw", "bhsd,hde->bhse", "bchw,bc->bhw", "bchw,whd->bcd"),
}


@production("matmul")
def _einsum(draft: Draft, x: Value) -> Value:
    draft.require(x.rank in _CONTRACTIONS)
    equation = draft.rng.choice(_CONTRACTIONS[x.rank])
    operands, _, result = equation.partition("->")
    first, second = operands.split(",")
    sizes = dict(zip(first, x.shape, strict=True))
    for letter in second:
        if letter not in sizes:
            sizes[letter] = width(draft, "columns", 48)
    flops = 1
    for dim in sizes.values():
        flops *= dim.value
    draft.afford(flops)
    y = draft.input("y", tuple(sizes[letter] for letter in second), dtype=x.dtype)
    shape = tuple(sizes[letter] for letter in result)
    code = f'torch.einsum("{equation}", {x.name}, {y.name})'
    return draft.let(x.name, code, shape, x.dtype, "einsum")


@production("matmul")
def _bilinear(draft: Draft, x: Value) -> Value:
    draft.weighs(x)
    left, right = x.shape[-1], width(draft, "other_features", 24)
    out = width(draft, "hidden", 24)
    draft.require(left.value <= 64)
    draft.afford(count(x.shape) * right.value * out.value)
    y = draft.input("y", (*x.shape[:-1], right))
    left = draft.named(left)
    layer = draft.layer("bilinear", f"nn.Bilinear({left.text}, {right.text}, {out.text})")
    code = f"{layer}({x.name}, {y.name})"
    return draft.let(x.name, code, (*x.shape[:-1], out), x.dtype, "bilinear")


@production("matmul")
def _grouped(draft: Draft, x: Value) -> Value:
    """A block-diagonal product."""
    features = x.shape[-1].value
    groups = draft.rng.choice((2, 3, 4, 5))
    draft.require(x.rank == 2 and features % groups == 0 and features > groups)
    out = width(draft, "columns", 32)
    inner = x.shape[-1].over(groups)
    draft.afford(count(x.shape) * out.value)
    batch = x.shape[0]
    weight = draft.input("weight", (Dim.of(groups), inner, out), dtype=x.dtype)
    draft.let(x.name, f"{x.name}.unflatten(-1, ({groups}, -1))", x.shape, x.dtype, "reshape")
    code = f'torch.einsum("bgi,gio->bgo", {x.name}, {weight.name}).flatten(1)'
    return draft.let(x.name, code, (batch, out.times(groups)), x.dtype, "einsum", "flatten")
