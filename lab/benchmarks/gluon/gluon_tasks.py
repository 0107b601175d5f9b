"""Tasks of the Gluon experiment, drawn by a written seed: 60 to learn from and 40 held out.

Each is a problem in KernelBench form: a kind of work (a product, a reduction, or data that moves)
with a function of its elements, in a dtype and at sizes that are drawn. No two tasks have the same
kind and function.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from itertools import product
from pathlib import Path

SEED = 20
LEARN, HELD_OUT = 60, 40
_SHARES = {"product": 50, "reduction": 28, "move": 22}
"""Tasks of each class; most of what Gluon adds to Triton is for products."""

_FUNCTIONS = (
    "F.relu({})",
    'F.gelu({}, approximate="tanh")',
    "F.silu({})",
    "torch.tanh({})",
    "torch.sigmoid({})",
    "F.leaky_relu({}, 0.1)",
    "torch.clamp({}, -1.0, 1.0)",
    "0.5 * {}",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of work: `value`, to which a function is applied, and `whole`, of its result.

    `inputs` names shapes in the names of sizes, `layers` are lines of the constructor.
    """

    inputs: dict[str, str]
    value: str
    whole: str = "{}"
    layers: tuple[str, ...] = ()


_ROWS, _TWO = {"x": "R, C"}, {"x": "R, C", "y": "R, C"}
_CLASSES = {
    "product": (
        Kind({"x": "M, K"}, "self.linear(x)", layers=("self.linear = nn.Linear(K, N)",)),
        Kind({"a": "M, K", "b": "K, N"}, "(a @ b)"),
        Kind({"a": "M, K", "b": "N, K"}, "(a @ b.T)"),
        Kind({"a": "B, M, K", "b": "B, K, N"}, "torch.bmm(a, b)"),
        Kind({"a": "M, K", "b": "K, N", "c": "M, N"}, "(a @ b)", "{} + c"),
        Kind(
            {"x": "M, K"},
            "self.gate(x)",
            "{} * self.up(x)",
            ("self.gate = nn.Linear(K, N, bias=False)", "self.up = nn.Linear(K, N, bias=False)"),
        ),
        Kind(
            {"x": "M, K"},
            "self.first(x)",
            "self.second({})",
            ("self.first = nn.Linear(K, N)", "self.second = nn.Linear(N, K)"),
        ),
        Kind({"q": "B, M, D", "k": "B, M, D"}, "(q @ k.mT)", "torch.softmax({}, dim=-1)"),
        Kind(
            {"q": "B, M, D", "k": "B, M, D", "v": "B, M, D"},
            "v",
            "F.scaled_dot_product_attention(q, k, {})",
        ),
    ),
    "reduction": (
        Kind(_ROWS, "x", "torch.softmax({}, dim=-1)"),
        Kind(_ROWS, "x", "torch.log_softmax({}, dim=-1)"),
        Kind(_ROWS, "x", "torch.logsumexp({}, dim=-1)"),
        Kind(_ROWS, "self.norm(x)", layers=("self.norm = nn.LayerNorm(C)",)),
        Kind(_ROWS, "self.norm(x)", layers=("self.norm = nn.RMSNorm(C, eps=1e-5)",)),
        Kind(_TWO, "x", "({} * y).sum(dim=-1)"),
        Kind(_ROWS, "x", "({}).mean(dim=0)"),
        Kind(_TWO, "x", "({} + y).amax(dim=-1)"),
        Kind(_ROWS, "x", "({}).var(dim=-1)"),
        Kind(_ROWS, "x", "F.normalize({}, dim=-1)"),
    ),
    "move": (
        Kind(_TWO, "x", "{} * y"),
        Kind(_ROWS, "x", "({}).T.contiguous()"),
        Kind({"x": "B, M, D"}, "x", "({}).transpose(1, 2).contiguous()"),
        Kind(_ROWS, "x", "torch.cumsum({}, dim=-1)"),
        Kind(_ROWS, "x[:, : C // 2]", "{} * x[:, C // 2 :]"),
        Kind(_ROWS, "x", "({}).view(R, C // 2, 2).flip(-1).reshape(R, C)"),
        Kind({"x": "R, C", "y": "R, C", "z": "C"}, "x", "{} + y * z"),
    ),
}
_SIZES = {
    "B": (4, 8, 16, 32),
    "C": (512, 1024, 2048, 3000, 4096),
    "D": (64, 128),
    "K": (256, 512, 1024, 1032, 2048),
    "M": (512, 1024, 1000, 2048),
    "N": (512, 1024, 1536, 2000, 4096),
    "R": (1024, 2048, 4096, 5000, 8192),
}
_HALVES = ("float16", "bfloat16")


def drawn() -> list[str]:
    """Return the sources of all tasks, those to learn from first."""
    rng = random.Random(SEED)
    sources = []
    for name, share in _SHARES.items():
        pairs = list(product(_CLASSES[name], _FUNCTIONS))
        for kind, function in rng.sample(pairs, share):
            dtype = rng.choice(_HALVES if name == "product" else (*_HALVES, "float32"))
            sources.append(_source(kind, function, dtype, rng))
    rng.shuffle(sources)
    return sources


def _source(kind: Kind, function: str, dtype: str, rng: random.Random) -> str:
    """Return a problem in KernelBench form."""
    result = kind.whole.format(function.format(kind.value))
    named = set(re.findall(r"\b[A-Z]\b", " ".join((*kind.inputs.values(), *kind.layers, result))))
    sizes = {name: rng.choice(choices) for name, choices in _SIZES.items() if name in named}
    names = ", ".join(kind.inputs)
    tensors = ", ".join(
        f"torch.randn({shape}, dtype=torch.{dtype})" for shape in kind.inputs.values()
    )
    lines = [
        "import torch",
        *(["import torch.nn.functional as F"] * ("F." in result)),
        "from torch import nn",
        "",
        *(f"{name} = {size}" for name, size in sizes.items()),
        "",
        "",
        "class Model(nn.Module):",
    ]
    if kind.layers:
        lines += [
            "    def __init__(self):",
            "        super().__init__()",
            *(f"        {layer}" for layer in kind.layers),
            f"        self.to(torch.{dtype})",
            "",
        ]
    lines += [
        f"    def forward(self, {names}):",
        f"        return {result}",
        "",
        "",
        "def get_inputs():",
        f"    return [{tensors}]",
    ]
    return "\n".join(lines) + "\n"


def write_tasks(out: Path) -> None:
    """Write the tasks to the folders `learn` and `held-out` of `out`."""
    for number, source in enumerate(drawn(), 1):
        folder = out / ("learn" if number <= LEARN else "held-out")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:03d}.py").write_text(source)
