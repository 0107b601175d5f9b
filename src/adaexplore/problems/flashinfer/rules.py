"""The drawing of inputs: Python text for each input of a definition, by its name and dtype.

Offsets, indices, masks and scales have a structure that random numbers lack: a rule draws each of
them as a caller would make it. All else is drawn from a normal distribution.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from adaexplore.problems.flashinfer.schema import Definition, TensorSpec

_FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
_LIMITS = {"int8": 128, "int16": 1024, "int32": 1024, "int64": 1024, "uint8": 256}
_LAST = re.compile(r"(\w+) == (\w+)\[-1\](?:\.item\(\))?")
_ROTARY = ("cos", "sin", "cos_cached", "sin_cached", "rope_cos", "rope_sin")
_WEIGHTS = re.compile(r"(?:.*_)?(?:weights?|projs?|weight_matrix)\d*")
_POSITIVE = re.compile(r"(?:.*_)?(?:rstd|std|var|variance)\d*")
_SCALES = re.compile(r".*(?:_scale|_scales|_scalar)\d*")


@dataclass(slots=True)
class Drawn:
    """The text that draws one input; `uses` are functions of `drawing` that it calls.

    `structured` inputs have values that only the rule can draw.
    """

    text: str
    structured: bool = True
    uses: tuple[str, ...] = ()
    first: list[str] = field(default_factory=list)


def drawn(definition: Definition, name: str) -> Drawn:
    """Return the text that draws an input; the sizes of all axes are variables in it.

    `first` are lines that come before: those of a pool, whose size they change.
    """
    spec = definition.inputs[name]
    if spec.shape is None:
        return Drawn(_scalar(definition, name, spec))
    if spec.dtype.startswith(("int", "uint")):
        found = _integers(definition, name, spec.shape)
        return found or Drawn(_any_integers(spec))
    found = _floats(definition, name, spec)
    return found or Drawn(_normal(spec), structured=False)


def _integers(definition: Definition, name: str, shape: tuple[str, ...]) -> Drawn | None:
    """Return the text for integers with a structure, None for a name that tells of none."""
    length, last = shape[0], shape[-1]
    dtype = definition.inputs[name].dtype
    as_own = "" if dtype == "int32" else f".to(torch.{dtype})"
    pool = _pool(definition)
    if name.endswith("indptr") or name == "cu_seqlens":
        return _offsets(definition, name, length, as_own)
    if name == "kv_indices" and pool:
        sizes = [f"{pool} = max(pages_held({pool}, {length}), {length})"]
        return Drawn(
            f"draw_pages({length}, {pool}){as_own}",
            uses=("draw_pages", "pages_held"),
            first=sizes,
        )
    if name == "kv_last_page_len":
        return _last_page(definition, length)
    if name.endswith("_indices") and len(shape) == 1 and (first := _first_axis_beside(definition)):
        sizes = [f"{first} = pages_held({first}, {length})"]
        return Drawn(
            f"draw_pages({length}, {first}){as_own}",
            uses=("draw_pages", "pages_held"),
            first=sizes,
        )
    if name == "sparse_indices" and pool:
        tokens = f"{pool} * page_size" if "page_size" in definition.const_axes else pool
        sizes = [f"{pool} = pages_held({pool}, {length} * {last})"]
        text = f"draw_distinct_rows({length}, {last}, {tokens})"
        return Drawn(text, uses=("draw_distinct_rows", "pages_held"), first=sizes)
    if name == "block_table" and pool:
        sizes = [f"{pool} = pages_held({pool}, {length} * {last})"]
        text = f"torch.randint({pool}, ({length}, {last}), dtype=torch.{dtype})"
        return Drawn(text, uses=("pages_held",), first=sizes)
    if name == "seq_lens" and "block_table" in definition.inputs:
        most = f"{definition.inputs['block_table'].shape[-1]} * page_size"  # type: ignore[index]
        return Drawn(f"torch.randint(1, {most} + 1, ({length},), dtype=torch.{dtype})")
    if name in ("positions", "position_ids"):
        most = "max_seq_len" if "max_seq_len" in definition.var_axes else "1024"
        return Drawn(f"torch.randint({most}, {_size(shape)}, dtype=torch.{dtype})")
    if name == "topk_ids" and "num_experts" in definition.const_axes:
        text = f"draw_packed_experts({length}, {last}, num_experts)"
        return Drawn(text, uses=("draw_packed_experts",))
    if dtype == "int8" and name.endswith("cache_fp8"):
        return Drawn(f"draw_packed_keys({', '.join(shape)})", uses=("draw_packed_keys",))
    return None


def _offsets(definition: Definition, name: str, length: str, as_own: str) -> Drawn:
    """Return the text for offsets; keys are at least as many as the queries of each part."""
    totals = {match[2]: match[1] for c in definition.constraints if (match := _LAST.fullmatch(c))}
    usual = ("total_seq_len", "total_kv", "num_kv_indices", "total_q")
    total = totals.get(name) or next((a for a in usual if a in definition.var_axes), "0")
    least = ""
    if name == "kv_indptr" and "qo_indptr" in definition.inputs:
        least = ", qo_indptr.diff()"
        if _pool(definition):
            least += " // page_size + (qo_indptr.diff() % page_size > 0)"
    return Drawn(f"draw_offsets({length} - 1, {total}{least}){as_own}", uses=("draw_offsets",))


def _last_page(definition: Definition, length: str) -> Drawn:
    queries = ", qo_indptr" if "qo_indptr" in definition.inputs else ""
    return Drawn(
        f"draw_last_pages({length}, page_size, kv_indptr{queries})", uses=("draw_last_pages",)
    )


def _floats(definition: Definition, name: str, spec: TensorSpec) -> Drawn | None:
    """Return the text for numbers that a caller does not draw from a normal distribution."""
    assert spec.shape is not None
    size, cast = _size(spec.shape), _cast(spec)
    recurrent = "A_log" in definition.inputs
    if name == "cos_sin_cache" and len(spec.shape) == 2:
        return Drawn(f"draw_cos_sin({', '.join(spec.shape)}){cast}", uses=("draw_cos_sin",))
    if name in _ROTARY:
        return Drawn(f"torch.{'cos' if 'cos' in name else 'sin'}(6.2832 * torch.rand{size}){cast}")
    if name == "A_log":
        return Drawn(f"(-1 - 4 * torch.rand{size}){cast}")
    if name in ("A", "g") and "dt" in definition.inputs:
        return Drawn(f"(-0.01 - torch.rand{size}){cast}")
    if name == "k" and recurrent:
        return Drawn(f"torch.nn.functional.normalize(torch.randn{size}, dim=-1){cast}")
    if name in ("attention_mask", "causal_mask") and _is_square(spec.shape):
        return Drawn(f"draw_causal_mask({size}){cast}", uses=("draw_causal_mask",))
    if name.endswith("_mask"):
        return Drawn(f"torch.randint(2, {size}){cast or '.float()'}")
    if name in ("attn_weights", "attention_weights", "routing_weights"):
        return Drawn(f"torch.randn{size}.softmax(-1){cast}")
    if _POSITIVE.fullmatch(name):
        return Drawn(f"(torch.randn{size}.abs() + 0.1){cast}")
    if _SCALES.fullmatch(name):
        return Drawn(f"(0.01 + 0.1 * torch.rand{size}){cast}")
    if spec.dtype not in _FLOAT8 and len(spec.shape) > 1 and _WEIGHTS.fullmatch(name):
        return Drawn(f"(torch.randn{size} / {spec.shape[-1]} ** 0.5){cast}", structured=False)
    return None


def _normal(spec: TensorSpec) -> str:
    assert spec.shape is not None
    if spec.dtype == "bool":
        return f"torch.randint(2, {_size(spec.shape)}, dtype=torch.bool)"
    clamped = ".clamp(-2, 2)" if spec.dtype in _FLOAT8 else ""
    return f"torch.randn{_size(spec.shape)}{clamped}{_cast(spec)}"


def _any_integers(spec: TensorSpec) -> str:
    assert spec.shape is not None
    most = _LIMITS[spec.dtype]
    least = 0 if spec.dtype == "uint8" else -most
    return f"torch.randint({least}, {most}, {_size(spec.shape)}, dtype=torch.{spec.dtype})"


def _scalar(definition: Definition, name: str, spec: TensorSpec) -> str:
    """Return a usual value of a scalar without one, as text."""
    if name in ("sm_scale", "scale"):
        dims = [axis for axis in ("head_dim", "head_size", "qk_dim") if axis in definition.axes]
        return f"{dims[0] if dims else 192} ** -0.5"
    usual = {"routed_scaling_factor": "2.5", "eps": "1e-6", "epsilon": "1e-6"}
    return usual.get(name, "0" if spec.dtype.startswith("int") else "1.0")


def _pool(definition: Definition) -> str:
    """Return the axis that counts the pages of caches, empty without one."""
    return "num_pages" if "num_pages" in definition.var_axes else ""


def _first_axis_beside(definition: Definition) -> str:
    """Return the variable axis of a pool of states, empty without one."""
    pools = (axis for axis in definition.var_axes if axis in ("pool_size", "state_cache_size"))
    return next(pools, "")


def _cast(spec: TensorSpec) -> str:
    return "" if spec.dtype == "float32" else f".to(torch.{spec.dtype})"


def _is_square(shape: tuple[str, ...]) -> bool:
    return len(shape) > 1 and shape[-1] == shape[-2]


def _size(shape: tuple[str, ...]) -> str:
    return f"({', '.join(shape)}{',' if len(shape) == 1 else ''})"
