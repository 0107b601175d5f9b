"""What to look for in a source: for probes whose fault the syntax alone tells for certain."""

from __future__ import annotations

from collections.abc import Mapping

from adaexplore.core.rule import Matcher

_ODD = {"_N": "not a power of two"}
_REDUCTIONS = ("sum", "max", "min", "argmax", "argmin")
_TORCH = (
    *("abs", "arange", "clamp", "cos", "empty", "exp", "log", "matmul", "max", "maximum", "mean"),
    *("min", "minimum", "mm", "ones", "pow", "relu", "rsqrt", "sigmoid", "sin", "softmax"),
    *("sqrt", "sum", "tanh", "where", "zeros"),
)
_NUMBERS = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64")


def _code(*code: str, **where: str) -> Matcher:
    return Matcher(code, where=where)


def _host(*code: str, **where: str) -> Matcher:
    return Matcher(code, where=where, scope="host")


def _no(construct: str) -> Matcher:
    return Matcher(construct=construct)


def _shapes(of: str) -> list[str]:
    """Shapes of one to three sizes with `_N` in any place."""
    sizes = ["_N", "_N, _", "_, _N", "_N, _, _", "_, _N, _", "_, _, _N"]
    tuples = [f"({shape},)" for shape in sizes]
    return [f"tl.{of}({shape}, ...)" for shape in (*tuples, *(f"[{size}]" for size in sizes))]


MATCHERS: Mapping[str, Matcher] = {
    "no-torch-in-kernels": _code(*(f"torch.{name}(...)" for name in _TORCH)),
    "arange-power-of-two": _code("tl.arange(0, _N)", **_ODD),
    "no-in-operator": _code("_ in _"),
    "no-ellipsis-index": _no("ellipsis as index"),
    "loop-over-a-tuple": _no("loop over values"),
    "loop-with-enumerate": _code("enumerate(...)", "zip(...)"),
    "no-break": _no("break"),
    "no-continue": _no("continue"),
    "no-chained-assignment": _code("_ = _ = _"),
    "no-starred-assignment": _no("starred assignment"),
    "no-assignment-in-expression": _no("assignment expression"),
    "no-lambda": _no("lambda"),
    "no-nested-function": _no("nested function"),
    "no-dict": _no("dict"),
    "no-try": _no("try"),
    "no-del": _no("del"),
    "no-match": _no("match"),
    "no-import": _no("import"),
    "no-set": _no("set"),
    "no-raise": _no("raise"),
    "no-global-statement": _no("global"),
    "loop-with-else": _no("loop with else"),
    "global-constants": _no("plain global number"),
    "arange-takes-two-bounds": _code("tl.arange(_)"),
    "arange-has-no-step": _code("tl.arange(_, _, _)"),
    "arange-has-no-dtype": _code("tl.arange(..., dtype=_)"),
    "shapes-are-powers-of-two": _code(*_shapes("zeros"), *_shapes("full"), **_ODD),
    "zeros-takes-a-dtype": _code("tl.zeros(_)", "tl.full(_, _)"),
    "shapes-of-a-million": _code(*_shapes("zeros"), *_shapes("full"), _N="> 1048576"),
    "no-tl-ones": _code("tl.ones"),
    "no-tl-inf": _code("tl.inf"),
    "no-tl-tanh": _code("tl.tanh"),
    "no-tl-math-tanh": _code("tl.math.tanh"),
    "no-tl-libdevice": _code("tl.libdevice"),
    "no-tl-pow": _code("tl.pow"),
    "no-tl-math-pow": _code("tl.math.pow"),
    "no-tl-log1p": _code("tl.log1p"),
    "no-tl-round": _code("tl.round"),
    "no-tl-relu": _code("tl.relu"),
    "no-tl-gelu": _code("tl.gelu"),
    "no-tl-silu": _code("tl.silu"),
    "no-tl-sign": _code("tl.sign"),
    "no-tl-square": _code("tl.square"),
    "no-tl-isnan": _code("tl.isnan"),
    "no-tl-logical-and": _code("tl.logical_and"),
    "no-tl-mean": _code("tl.mean"),
    "no-tl-var": _code("tl.var"),
    "no-tl-any": _code("tl.any"),
    "no-tl-all": _code("tl.all"),
    "no-tl-clip": _code("tl.clip"),
    "no-tl-bool": _code("tl.bool"),
    "maximum-of-two": _code("tl.max(_, _F)", _F="a float"),
    "where-takes-three": _code("tl.where(_)"),
    "no-torch-dtype": _code(*(f"_.to(torch.{name})" for name in _NUMBERS)),
    "no-dtype-by-name": _code("_.to(_S)", _S="a string"),
    "no-python-dtype": _code("_.to(float)"),
    "dtypes-are-not-called": _code(*(f"tl.{name}(_)" for name in _NUMBERS)),
    "no-tensor-methods": _code(*(f"_.{name}()" for name in ("float", "half", "double", "long"))),
    "sum-takes-keep-dims": _code(*(f"tl.{name}(..., keepdim=_)" for name in _REDUCTIONS)),
    "sum-takes-axis": _code(*(f"tl.{name}(..., dim=_)" for name in _REDUCTIONS)),
    "sum-over-one-axis": _code("tl.sum(_, axis=_T)", "tl.sum(_, _T)", _T="a tuple"),
    "argmax-needs-an-axis": _code("tl.argmax(_)", "tl.argmin(_)"),
    "reduce-takes-a-jitted-function": _code(
        *(f"tl.reduce(_, _, tl.{name})" for name in ("add", "maximum", "minimum"))
    ),
    "no-minus-one-in-reshape": _code(
        *(f"tl.reshape(_, {shape})" for shape in ("-1", "(-1,)", "(-1, _)", "(_, -1)", "[-1]"))
    ),
    "no-squeeze": _code("tl.squeeze"),
    "cat-reorders": _code("tl.cat(_, _)"),
    "join-takes-two": _code("tl.join(_)"),
    "other-needs-a-mask": _code("tl.load(_, other=_)"),
    "load-has-no-dtype": _code("tl.load(..., dtype=_)"),
    "store-has-no-other": _code("tl.store(..., other=_)"),
    "names-of-evictions": _code('tl.load(..., eviction_policy="evict_normal")'),
    "names-of-cache-modifiers": _code(
        *(f'tl.load(..., cache_modifier="{name}")' for name in ("ca", "cg", "cv"))
    ),
    "evict-first-is-not-cached-in-l2-only": _code(
        'tl.load(..., cache_modifier=".cg", eviction_policy="evict_first")'
    ),
    "block-pointers": _code("tl.make_block_ptr"),
    "program-id-needs-an-axis": _code("tl.program_id()"),
    "random-numbers-take-offsets": _code("tl.rand(_)", "tl.randn(_)"),
    "no-matmul-operator": _code("_ @ _"),
    "no-tl-matmul": _code("tl.matmul"),
    "dot-transposes-nothing": _code("tl.dot(..., trans_a=_)", "tl.dot(..., trans_b=_)"),
    "dot-precision-names": _code('tl.dot(..., input_precision="fp32")'),
    "dot-of-integers": _code("tl.dot(_.to(tl.int32), _.to(tl.int32), ...)"),
    "grid-is-a-tuple": _host("_[triton.cdiv(_, _)](...)"),
    "grid-callable-takes-meta": _host("_[lambda: _](...)"),
    "num-warps-power-of-two": _host(
        "_[_](..., num_warps=_N)", "triton.Config(..., num_warps=_N)", **_ODD
    ),
    "no-parameter-named-grid": _host("_[_](..., grid=_)"),
    "jit-is-innermost": Matcher(construct="jit above autotune", scope="host"),
    "configs-are-triton-config": _host("triton.autotune(..., configs=[_D, ...])", _D="a dict"),
    "autotune-needs-key": _host("triton.autotune(_)", "triton.autotune(configs=_)"),
    "three-grid-axes": _code("tl.program_id(_A)", "tl.program_id(axis=_A)", _A="> 2"),
}
"""Matchers by the names of their probes; see `rule.Matcher`."""
