"""Workloads for definitions to which a dataset has none: sizes by the names of their axes."""

from __future__ import annotations

from collections.abc import Mapping

from adaexplore.core.errors import BadProblemError
from adaexplore.problems.flashinfer.schema import (
    CUSTOM,
    RANDOM,
    BenchWorkload,
    Definition,
    InputSource,
    named,
)

_PARTS, _TOKENS, _LARGER = 4, 64, 8
_SMALL: Mapping[str, int] = {
    **{"batch_size": _PARTS, "num_seqs": _PARTS, "num_tokens": _PARTS, "M": _TOKENS},
    **{"total_q": _TOKENS, "total_kv": 2 * _TOKENS, "total_seq_len": _TOKENS},
    **{"num_kv_indices": 2 * _TOKENS, "num_pages": 4 * _TOKENS, "max_num_pages": _TOKENS // 2},
    **{"seq_len": 8, "pool_size": 2 * _PARTS, "state_cache_size": 2 * _PARTS},
    **{"num_qo_heads": 8, "num_kv_heads": 2, "max_seq_len": 1024},
    **{"len_indptr": _PARTS + 1, "len_cu_seqlens": _PARTS + 1},
}
_GROWS = ("batch_size", "num_tokens", "M", "seq_len", "total_seq_len", "total_q", "total_kv")
_POOLS = ("num_kv_indices", "num_pages", "pool_size", "state_cache_size")
_OFFSETS = {"len_indptr": "batch_size", "len_cu_seqlens": "num_seqs"}


def made_workloads(definition: Definition) -> list[BenchWorkload]:
    """Return a small and a larger workload with drawn inputs.

    Raises `BadProblemError` for an axis of which the name tells nothing.
    """
    return named([_made(definition, uuid, by) for uuid, by in (("made1", 1), ("made2", _LARGER))])


def _made(definition: Definition, uuid: str, by: int) -> BenchWorkload:
    unknown = [axis for axis in definition.var_axes if axis not in _SMALL]
    if unknown:
        raise BadProblemError(
            f"{definition.name}: has no workloads, and nothing tells a size for the axis "
            f"{unknown[0]}; add a line to its file of workloads"
        )
    grown = (*_GROWS, *_POOLS)
    axes = {a: _SMALL[a] * (by if a in grown else 1) for a in definition.var_axes}
    for offsets, parts in _OFFSETS.items():
        if offsets in axes and parts in axes:
            axes[offsets] = axes[parts] + 1
    definition.sizes(axes)  # all of them can be computed
    kind = CUSTOM if definition.custom_inputs else RANDOM
    inputs = dict.fromkeys(definition.inputs, InputSource(kind))
    return BenchWorkload(uuid, axes, inputs, made=True)
