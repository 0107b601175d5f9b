"""Inputs of definitions, drawn by rules on their names."""

from __future__ import annotations

import json

import pytest
import torch

from adaexplore.core.errors import BadProblemError
from adaexplore.problems import load_problem
from adaexplore.sandbox.user.user_code import Instance
from flashinfer_files import SCALAR, definition, lines, put, tensor, trace


@pytest.fixture
def drawn(tmp_path):
    """The inputs of a definition with these inputs and sizes, by name."""

    def drawn(inputs, seed=0, constraints=(), const=(), **axes):
        source = f"def run({', '.join(inputs)}):\n    return {next(iter(inputs))}\n"
        sizes = {axis: size if axis in const else None for axis, size in axes.items()}
        made = definition("d", "t", source, inputs, {}, sizes, constraints=list(constraints))
        variable = {axis: size for axis, size in axes.items() if axis not in const}
        files = {
            "definitions/t/d.json": json.dumps(made),
            "workloads/t/d.jsonl": lines([trace("d", "1-a", variable, {})]),
        }
        file = put(tmp_path, files) / "definitions/t/d.json"
        problem = load_problem(file, device="cpu", language="cpp")
        given = Instance.of(problem, tmp_path).inputs(seed, problem.workloads[0])
        return dict(zip(inputs, given.args, strict=True))

    return drawn


def integers(*shape, dtype="int32"):
    return tensor(*shape, dtype=dtype)


@pytest.mark.parametrize("seed", range(3))
def test_every_sequence_has_as_many_keys_as_queries(drawn, seed):
    found = drawn(
        {
            "qo_indptr": integers("len_indptr"),
            "kv_indptr": integers("len_indptr"),
            "kv_indices": integers("num_kv_indices"),
            "kv_last_page_len": integers("batch_size"),
            "cache": tensor("num_pages", "page_size"),
        },
        seed,
        ["total_q == qo_indptr[-1].item()", "num_kv_indices == kv_indptr[-1].item()"],
        ["page_size"],
        total_q=70,
        num_kv_indices=30,
        len_indptr=5,
        batch_size=4,
        num_pages=100,
        page_size=8,
    )
    queries, parts = found["qo_indptr"].diff(), found["kv_indptr"].diff()
    last = found["kv_last_page_len"]
    assert (int(queries.sum()), int(parts.sum())) == (70, 30)
    assert ((last >= 1) & (last <= 8)).all()
    assert ((parts - 1) * 8 + last >= queries).all()
    assert len(found["kv_indices"].unique()) == 30
    assert len(found["cache"]) == 30 + 30 // 8 + 1


def test_offsets_leave_no_part_empty_where_there_is_room(drawn):
    found = drawn({"cu_seqlens": integers("n", dtype="int64")}, n=6, total_seq_len=7)["cu_seqlens"]
    assert found.dtype is torch.int64
    assert found[0] == 0
    assert found[-1] == 7
    assert (found.diff() >= 1).all()


def test_offsets_without_room_still_reach_the_total(drawn):
    found = drawn({"cu_seqlens": integers("n")}, n=6, total_seq_len=2)["cu_seqlens"]
    assert found[-1] == 2
    assert (found.diff() >= 0).all()


def test_pages_and_lengths_of_a_block_table_are_in_range(drawn):
    found = drawn(
        {
            "seq_lens": integers("batch_size"),
            "block_table": integers("batch_size", "max_num_pages"),
            "k_index_cache_fp8": integers("num_pages", "page_size", "one", "wide", dtype="int8"),
        },
        const=("page_size", "one", "wide"),
        batch_size=3,
        max_num_pages=4,
        num_pages=50,
        page_size=2,
        one=1,
        wide=12,
    )
    keys = found["k_index_cache_fp8"]
    assert int(found["block_table"].max()) < len(keys) == 14
    assert ((found["seq_lens"] >= 1) & (found["seq_lens"] <= 8)).all()
    flat = keys.view(len(keys), -1)
    assert flat[:, : 2 * 8].contiguous().view(torch.float8_e4m3fn).float().isfinite().all()
    scales = flat[:, 2 * 8 :].contiguous().view(torch.float32)
    assert ((scales >= 0.5) & (scales < 1.5)).all()


def test_rows_of_sparse_indices_differ_and_are_padded(drawn):
    inputs = {"sparse_indices": integers("tokens", "topk"), "cache": tensor("num_pages", "topk")}
    found = drawn(inputs, tokens=2, topk=6, num_pages=4)["sparse_indices"]
    for row in found:
        assert sorted(row[row >= 0].tolist()) == [0, 1, 2, 3]
        assert (row[4:] == -1).all()


def test_states_and_positions_are_in_range(drawn):
    found = drawn(
        {
            "state_batch_indices": integers("batch_size"),
            "state": tensor("state_cache_size", "batch_size"),
            "positions": integers("batch_size", dtype="int64"),
        },
        batch_size=4,
        state_cache_size=90,
        max_seq_len=5,
    )
    assert len(found["state_batch_indices"].unique()) == 4
    assert int(found["state_batch_indices"].max()) < len(found["state"]) == 5
    assert int(found["positions"].max()) < 5


def test_packed_experts_hold_numbers_and_weights(drawn):
    found = drawn(
        {"topk_ids": integers("seq_len", "top_k")},
        const=("top_k", "num_experts"),
        seq_len=5,
        top_k=3,
        num_experts=7,
    )["topk_ids"]
    experts, bits = found >> 16, found & 0xFFFF
    assert ((experts >= 0) & (experts < 7)).all()
    assert all(len(row.unique()) == 3 for row in experts)
    weights = bits.to(torch.int16).view(torch.bfloat16).float()
    assert torch.allclose(weights.sum(-1), torch.ones(5), atol=0.02)


@pytest.mark.parametrize(
    ("name", "dtype", "is_right"),
    [
        ("A_log", "float32", lambda t: (t <= -1).all() and (t >= -5).all()),
        ("gemm1_weights_scale", "float32", lambda t: (t > 0).all()),
        ("row_rstd", "float32", lambda t: (t >= 0.1).all()),
        ("cos", "bfloat16", lambda t: (t.abs() <= 1).all()),
        (
            "cos_sin_cache",
            "float32",
            lambda t: torch.allclose(t[:, :4] ** 2 + t[:, 4:] ** 2, 1 + 0 * t[:, 4:]),
        ),
        ("attention_weights", "float32", lambda t: torch.allclose(t.sum(-1), torch.ones(8))),
        ("text_mask", "float32", lambda t: set(t.unique().tolist()) <= {0.0, 1.0}),
        ("causal_mask", "float32", lambda t: (t.tril() == 0).all() and (t[0, 1:] < -1e30).all()),
        ("x", "float8_e4m3fn", lambda t: (t.float().abs() <= 2).all()),
        ("flags", "bool", lambda t: t.dtype is torch.bool),
        ("o_proj", "float32", lambda t: t.std() < 0.6),
        ("codes", "int8", lambda t: t.dtype is torch.int8),
    ],
)
def test_names_tell_how_values_are_made(drawn, name, dtype, is_right):
    assert is_right(drawn({name: tensor("n", "n", dtype=dtype)}, n=8)[name])


def test_keys_of_a_recurrence_have_length_one(drawn):
    inputs = {"k": tensor("n", "n"), "A_log": tensor("n", dtype="float32")}
    assert torch.allclose(drawn(inputs, n=64)["k"].float().norm(dim=-1), torch.ones(64), atol=0.02)


def test_a_scalar_without_a_value_has_its_usual_one(drawn):
    inputs = {"x": tensor("n"), "sm_scale": SCALAR, "eps": SCALAR, "count": integers()}
    inputs["count"] = {"shape": None, "dtype": "int32"}
    found = drawn(inputs, const=("head_dim",), n=2, head_dim=64)
    assert (found["sm_scale"], found["eps"], found["count"]) == (0.125, 1e-6, 0)


def test_an_axis_without_a_size_is_refused(tmp_path):
    made = definition("d", "t", "def run(x): return x", {"x": tensor("n")}, {}, {"n": None})
    file = put(tmp_path, {"definitions/t/d.json": json.dumps(made)}) / "definitions/t/d.json"
    with pytest.raises(BadProblemError, match="nothing tells a size for the axis n"):
        load_problem(file, device="cpu", language="cpp")
