"""Losses against a target that comes as another input."""

from __future__ import annotations

from adaexplore_lab.synthesize.draft import Draft, Value, is_half
from adaexplore_lab.synthesize.productions.base import production, register
from adaexplore_lab.synthesize.sizes import Shape, count

_FORMS = {
    "mse_loss": "F.mse_loss({x}, {y}{r})",
    "l1_loss": "F.l1_loss({x}, {y}{r})",
    "smooth_l1_loss": "F.smooth_l1_loss({x}, {y}, beta=0.5{r})",
    "huber_loss": "F.huber_loss({x}, {y}, delta=1.3{r})",
    "bce_with_logits": "F.binary_cross_entropy_with_logits({x}, torch.sigmoid({y}){r})",
    "soft_margin_loss": "F.soft_margin_loss({x}, torch.tanh({y}){r})",
    "poisson_nll_loss": "F.poisson_nll_loss({x}.clamp(max=3.0), {y}.abs(){r})",
    "kl_div": "F.kl_div(F.logsigmoid({x}), torch.sigmoid({y}){r})",
}


def _reduced(draft: Draft, shape: Shape) -> tuple[str, Shape]:
    """The argument that says how a loss is reduced, and the shape it has then."""
    how = draft.rng.choice(("mean", "none", "none"))
    return ("", ()) if how == "mean" else (f', reduction="{how}"', shape)


def _loss(name: str, form: str) -> None:
    def grow(draft: Draft, x: Value) -> Value:
        draft.require(not is_half(x.dtype) and count(x.shape) >= 8)
        target = draft.input("target", x.shape, dtype=x.dtype)
        option, shape = _reduced(draft, x.shape)
        code = form.format(x=x.name, y=target.name, r=option)
        return draft.let("loss", code, shape, x.dtype, name)

    register("loss", name, grow)


for _name, _form in _FORMS.items():
    _loss(_name, _form)


@production("loss")
def _cross_entropy(draft: Draft, x: Value) -> Value:
    draft.require(2 <= x.rank <= 4 and x.shape[1].value > 2 and not is_half(x.dtype))
    target = draft.integers("target", x.shape[1], (x.shape[0], *x.shape[2:]))
    option, shape = _reduced(draft, (x.shape[0], *x.shape[2:]))
    smoothing = draft.rng.choice(("", ", label_smoothing=0.1"))
    code = f"F.cross_entropy({x.name}, {target.name}{smoothing}{option})"
    return draft.let("loss", code, shape, x.dtype, "cross_entropy")


@production("loss")
def _nll(draft: Draft, x: Value) -> Value:
    draft.require(x.rank == 2 and x.shape[1].value > 2 and not is_half(x.dtype))
    target = draft.integers("target", x.shape[1], (x.shape[0],))
    option, shape = _reduced(draft, (x.shape[0],))
    code = f"F.nll_loss(torch.log_softmax({x.name}, dim=1), {target.name}{option})"
    return draft.let("loss", code, shape, x.dtype, "log_softmax", "nll_loss")


@production("loss")
def _kl_div(draft: Draft, x: Value) -> Value:
    draft.require(x.rank >= 2 and x.shape[-1].value > 2 and not is_half(x.dtype))
    target = draft.input("target", x.shape, dtype=x.dtype)
    code = (
        f"F.kl_div(torch.log_softmax({x.name}, dim=-1), torch.softmax({target.name}, dim=-1), "
        'reduction="none").sum(dim=-1)'
    )
    ops = ("log_softmax", "softmax", "kl_div", "sum")
    return draft.let("loss", code, x.shape[:-1], x.dtype, *ops)


@production("loss")
def _triplet(draft: Draft, x: Value) -> Value:
    draft.require(x.rank == 2 and x.shape[-1].value > 2 and not is_half(x.dtype))
    positive = draft.input("positive", x.shape, dtype=x.dtype)
    negative = draft.input("negative", x.shape, dtype=x.dtype)
    option, shape = _reduced(draft, (x.shape[0],))
    code = f"F.triplet_margin_loss({x.name}, {positive.name}, {negative.name}{option})"
    return draft.let("loss", code, shape, x.dtype, "triplet_margin_loss")


@production("loss")
def _contrastive(draft: Draft, x: Value) -> Value:
    """Each row against its own partner and all others (InfoNCE)."""
    draft.require(x.rank == 2 and not is_half(x.dtype))
    draft.require(x.shape[0].value > 2 and x.shape[1].value > 2)
    y = draft.input("y", x.shape, dtype=x.dtype)
    rows = x.shape[0]
    draft.let(
        "logits",
        f"F.normalize({x.name}, dim=-1) @ F.normalize({y.name}, dim=-1).T / 0.2",
        (rows, rows),
        x.dtype,
        "normalize",
        "matmul",
    )
    code = "torch.logsumexp(logits, dim=-1) - logits.diagonal()"
    return draft.let("loss", code, (rows,), x.dtype, "logsumexp", "diagonal", "sub")
