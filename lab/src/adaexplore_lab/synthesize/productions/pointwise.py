"""Element by element: activations, functions of one value, of two, and with broadcasting."""

from __future__ import annotations

from adaexplore_lab.synthesize.draft import Draft, Value, promoted
from adaexplore_lab.synthesize.productions.base import axis_of, production, register
from adaexplore_lab.synthesize.sizes import Dim, Shape, UnfitError, broadcast, values

_ACTIVATIONS = {
    "relu": ("torch.relu({})", "F.relu({})"),
    "gelu": ("F.gelu({})",),
    "gelu_tanh": ('F.gelu({}, approximate="tanh")',),
    "silu": ("F.silu({})", "{0} * torch.sigmoid({0})"),
    "sigmoid": ("torch.sigmoid({})",),
    "tanh": ("torch.tanh({})",),
    "softplus": ("F.softplus({})", "F.softplus({}, beta=2.0, threshold=10.0)"),
    "elu": ("F.elu({})", "F.elu({}, alpha=0.5)"),
    "celu": ("F.celu({}, alpha=1.5)",),
    "selu": ("F.selu({})",),
    "leaky_relu": ("F.leaky_relu({}, 0.1)", "F.leaky_relu({}, negative_slope=0.02)"),
    "hardswish": ("F.hardswish({})",),
    "hardsigmoid": ("F.hardsigmoid({})",),
    "hardtanh": ("F.hardtanh({}, -0.7, 1.3)", "F.relu6({})"),
    "clamp": ("{}.clamp(-1.5, 2.0)", "torch.clamp({}, min=-0.25)", "{}.clamp(max=0.75)"),
    "mish": ("F.mish({})",),
    "softsign": ("F.softsign({})", "{0} / (1 + {0}.abs())"),
    "logsigmoid": ("F.logsigmoid({})",),
    "tanhshrink": ("F.tanhshrink({})",),
    "softshrink": ("F.softshrink({}, 0.3)",),
}

_FUNCTIONS = {
    "exp": ("torch.exp(-{}.abs())", "torch.exp(0.5 * torch.tanh({}))"),
    "expm1": ("torch.expm1({}.clamp(max=2.0))",),
    "log": ("torch.log1p({}.abs())", "torch.log({}.abs() + 0.5)"),
    "sqrt": ("torch.sqrt({}.abs() + 0.01)", "torch.sqrt(1 + {}.square())"),
    "rsqrt": ("torch.rsqrt({}.square() + 0.1)",),
    "square": ("{}.square()", "{}.pow(2)"),
    "abs": ("{}.abs()", "torch.abs({})"),
    "reciprocal": ("1.0 / (1.0 + {}.square())", "torch.reciprocal({}.abs() + 0.5)"),
    "sin": ("torch.sin({})",),
    "cos": ("torch.cos({})",),
    "erf": ("torch.erf({})",),
    "atan": ("torch.atan({})",),
    "pow": ("{}.pow(3)", "{}.abs().pow(1.5)"),
    "scale": ("0.125 * {}", "{} / 3.0", "1.7 * {} - 0.4"),
    "neg": ("1 - {}", "-{} + 2"),
    "logit": ("torch.logit(torch.sigmoid({}), eps=1e-3)",),
}

_BINARY = {
    "add": ("{} + {}", "torch.add({}, {}, alpha=0.5)"),
    "sub": ("{} - {}",),
    "mul": ("{} * {}",),
    "div": ("{0} / ({1}.abs() + 1.0)", "{0} / (0.5 + {1}.square())"),
    "maximum": ("torch.maximum({}, {})",),
    "minimum": ("torch.minimum({}, {})",),
    "lerp": ("torch.lerp({}, {}, 0.3)",),
    "hypot": ("torch.hypot({}, {} + 0.5)",),
    "logaddexp": ("torch.logaddexp({}, {})",),
    "addcmul": ("torch.addcmul({0}, {0}, {1}, value=0.5)",),
    "gate": ("{} * torch.sigmoid({})", "torch.tanh({}) * {}"),
    "squared_difference": ("({} - {}).square()",),
    "where": ("torch.where({0} > {1}, {0}, 0.1 * {1} + 0.9 * {0})",),
}

_SAME_DTYPE = ("lerp", "addcmul", "hypot", "logaddexp", "where")


def _one(family: str, name: str, forms: tuple[str, ...]) -> None:
    def grow(draft: Draft, x: Value) -> Value:
        code = draft.rng.choice(forms).format(x.name)
        return draft.let(x.name, code, x.shape, x.dtype, name)

    register(family, name, grow)


def _two(name: str, forms: tuple[str, ...]) -> None:
    def grow(draft: Draft, x: Value) -> Value:
        y = partner(draft, x, other_dtypes=name not in _SAME_DTYPE)
        shape = broadcast(x.shape, y.shape)
        code = draft.rng.choice(forms).format(x.name, y.name)
        return draft.let(x.name, code, shape, promoted(x.dtype, y.dtype), name)

    register("binary", name, grow)


for _name, _forms in _ACTIVATIONS.items():
    _one("activation", _name, _forms)
for _name, _forms in _FUNCTIONS.items():
    _one("function", _name, _forms)
for _name, _forms in _BINARY.items():
    _two(_name, _forms)


def partner(draft: Draft, x: Value, *, other_dtypes: bool = True) -> Value:
    """Something to combine a value with: a kept one, a parameter, or another input."""
    kept = [v for v in draft.at_hand() if _fits(x, v) and (other_dtypes or v.dtype == x.dtype)]
    if kept and draft.chance(0.6):
        return draft.rng.choice(kept)
    if draft.chance(0.35) and x.dtype == draft.dtype:
        name = draft.rng.choice(("scale", "bias", "weight"))
        return draft.parameter(name, _per_axis(draft, x))
    dtype = x.dtype
    if other_dtypes and draft.chance(0.12):
        dtype = draft.rng.choice(("float16", "bfloat16", "float32"))
    return draft.input(draft.rng.choice(("y", "other", "z")), _narrower(draft, x), dtype=dtype)


def _fits(x: Value, other: Value) -> bool:
    try:
        broadcast(x.shape, other.shape)
    except UnfitError:
        return False
    return True


def _per_axis(draft: Draft, x: Value) -> Shape:
    """The shape of a parameter with a number for each index of one axis."""
    axis = axis_of(draft, x, least=1)
    return (x.shape[axis], *(Dim.of(1) for _ in x.shape[axis + 1 :]))


def _narrower(draft: Draft, x: Value) -> Shape:
    """The shape, or one that broadcasts to it: leading axes left out, some of size 1."""
    if draft.chance(0.4):
        return x.shape
    start = draft.rng.randrange(x.rank)
    shape = [Dim.of(1) if draft.chance(0.4) else dim for dim in x.shape[start:]]
    draft.require(any(dim.value > 1 for dim in shape))
    return tuple(shape)


@production("activation")
def _prelu(draft: Draft, x: Value) -> Value:
    draft.weighs(x)
    draft.require(x.rank >= 2)
    slopes = draft.named(x.shape[1])
    layer = draft.layer("prelu", f"nn.PReLU({slopes.text})")
    return draft.let(x.name, f"{layer}({x.name})", x.shape, x.dtype, "prelu")


@production("activation")
def _glu(draft: Draft, x: Value) -> Value:
    axis = axis_of(draft, x)
    draft.require(x.shape[axis].value % 2 == 0)
    shape = (*x.shape[:axis], x.shape[axis].over(2), *x.shape[axis + 1 :])
    return draft.let(x.name, f"F.glu({x.name}, dim={axis})", shape, x.dtype, "glu")


@production("binary")
def _masked_fill(draft: Draft, x: Value) -> Value:
    mask = draft.mask("mask", _narrower(draft, x))
    code = f"{x.name}.masked_fill({mask.name}, {draft.rng.choice(('0.0', '-1.5'))})"
    return draft.let(x.name, code, x.shape, x.dtype, "masked_fill")


@production("binary")
def _select(draft: Draft, x: Value) -> Value:
    y = partner(draft, x, other_dtypes=False)
    draft.require(values(broadcast(x.shape, y.shape)) == values(x.shape))
    mask = draft.mask("mask", _narrower(draft, x))
    code = f"torch.where({mask.name}, {x.name}, {y.name})"
    return draft.let(x.name, code, x.shape, x.dtype, "where")


@production("function")
def _cast(draft: Draft, x: Value) -> Value:
    if x.dtype == "float32":
        draft.require(draft.dtype != "float32")
        code = f"{x.name}.to(torch.{draft.dtype})"
        return draft.let(x.name, code, x.shape, draft.dtype, "cast")
    return draft.let(x.name, f"{x.name}.float()", x.shape, "float32", "cast")
