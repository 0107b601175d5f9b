"""Topics of the kernel that a PyTorch problem will become."""

from __future__ import annotations

import re

_IMPLIED: tuple[tuple[str, str], ...] = (
    (r"linear|matmul|b?mm|addmm|baddbmm|einsum|bilinear|conv\w*", "tl.dot matmul mask"),
    (r"\w*attention\w*", "tl.dot softmax attention tl.exp tl.max tl.trans"),
    (r"(log_)?softmax|logsumexp|cross_entropy\w*", "softmax tl.exp tl.max tl.sum other"),
    (r"(layer|group|instance|batch)_norm\w*|var|std", "var layer_norm tl.sum mean tl.where"),
    (r"rms_norm|rsqrt|normalize", "rms_norm tl.rsqrt tl.sum"),
    (r"gelu", "gelu tanh tl.erf libdevice.tanh"),
    (r"tanh|tanhshrink", "tanh libdevice.tanh"),
    (r"silu|swish|sigmoid|hardsigmoid|glu", "silu sigmoid tl.sigmoid tl.exp"),
    (r"softplus|mish|log1p", "softplus mish log1p tl.log libdevice.log1p"),
    (r"elu|selu|celu|expm1", "elu expm1 tl.exp"),
    (r"relu6?|leaky_relu|clamp\w*|hardtanh|clip", "relu tl.maximum clamp"),
    (r"mean|\w*avg_pool\w*", "mean tl.sum"),
    (r"sum|norm", "sum tl.sum"),
    (r"max|amax|\w*max_pool\w*", "amax tl.max other"),
    (r"min|amin", "amin tl.min other"),
    (r"argmax|argmin|topk|sort", "argmax tl.argmax"),
    (r"cumsum|cumprod|cumulative\w*|scan", "cumsum tl.cumsum tl.associative_scan"),
    (r"prod", "prod tl.reduce"),
    (r"pow|square", "pow **"),
    (r"round|floor|ceil|remainder|fmod", "round floor % //"),
    (r"half|float16", "fp16 float16"),
    (r"bfloat16", "bf16 fp16"),
    (r"transpose|permute|t|mT|T", "transpose stride contiguous tl.trans"),
    (r"embedding\w*|gather|scatter\w*|index_\w+|long|int64", "int64 int32 pointer"),
    (r"scatter_add|bincount|histc|index_add", "tl.atomic_add"),
    (r"dropout\w*|bernoulli\w*", "dropout tl.rand"),
)
_FRAME = {
    "torch",
    "nn",
    "self",
    "class",
    "model",
    "module",
    "super",
    "forward",
    "init",
    "import",
    "from",
    "return",
    "def",
    "randn",
    "rand",
    "randint",
    "get_inputs",
    "get_init_inputs",
}
"""What every reference names."""


def implied(reference: str) -> str:
    """Topics of a kernel for a reference, as a text that names them.

    They are the operations it names, spelled as functions (`nn.LayerNorm` is `layer_norm`), and
    what of Triton a kernel for them uses.
    """
    names = {_as_function(name) for name in re.findall(r"[A-Za-z_]\w*", reference)}
    found = names - _FRAME
    if "@" in re.sub(r"(?m)^\s*@.*$", "", reference):  # a product, not a decorator
        names.add("matmul")
    for pattern, topics in _IMPLIED:
        if any(re.fullmatch(pattern, name) for name in names):
            found.update(topics.split())
    return "\n".join(sorted(found))


def _as_function(name: str) -> str:
    """`LayerNorm` as `layer_norm`; `GELU` as `gelu`; a dimension at the end is left out."""
    name = re.sub(r"\d+d$", "", name)
    if name.isupper():
        return name.lower()
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
