"""What is read from Inductor's source, in the forms of both supported versions."""

from __future__ import annotations

import ast

import pytest
import wrappers

from adaexplore.propose.compiler.graph import UnsupportedError
from adaexplore.propose.compiler.wrapper import TritonKernel, hoist_workspace, names_in, parse


def text(body: list[ast.stmt]) -> str:
    return "\n".join(ast.unparse(node) for node in body)


@pytest.mark.parametrize("source", [wrappers.TORCH_2_11, wrappers.TORCH_2_13])
def test_keeps_the_statements_that_do_work(source: str) -> None:
    wrapper = parse(source)
    assert wrapper.parameters == ["arg0_1", "arg1_1"]
    assert list(wrapper.kernels) == [
        "triton_poi_fused_exp_0",
        "triton_red_fused_sum_1",
        "triton_tem_fused_mm_2",
    ]
    body = text(wrapper.body)
    for gone in ("assert_size_stride", "args", "set_device", "misaligned", "buf2", "del arg"):
        assert gone not in body
    assert "triton_tem_fused_mm_2.run(buf1, buf0, buf0, 5, 1, 1" in body
    assert "del buf1" in body


def test_header_has_the_source_of_each_name() -> None:
    header = parse(wrappers.TORCH_2_13).header
    assert header["inf"] == "from math import inf"
    assert header["get_raw_stream"].endswith("_cuda_getCurrentRawStream as get_raw_stream")
    assert header["aten"] == "aten = torch.ops.aten"


def test_refuses_kernels_in_other_languages() -> None:
    source = "k = async_compile.cutedsl('k', '''pass''')\ndef call(args):\n    return ()\n"
    with pytest.raises(UnsupportedError, match="kernel k is written in cutedsl"):
        parse(source)


def test_hoists_only_what_no_output_shares_memory_with() -> None:
    workspace, body = hoist_workspace(parse(wrappers.TORCH_2_13).body)
    assert workspace == {"buf1": "empty_strided_cuda((64, 100), (100, 1), torch.float32)"}
    assert "del buf1" not in text(body)
    assert "buf0 = empty_strided_cuda" in text(body)  # returned under another shape


@pytest.mark.parametrize(
    ("operator", "kept"),
    [
        ("torch.ops.mkldnn._linear_pointwise.default", ["buf0"]),
        ("torch.ops.mkldnn._linear_pointwise_.binary", []),  # in place: the result is its input
        ("torch.ops.aten.view.default", []),
    ],
)
def test_results_may_share_memory_with_arguments(operator: str, kept: list[str]) -> None:
    body = ast.parse(
        f"buf0 = empty_strided_cpu((2,), (1,), torch.float32)\nbuf1 = {operator}(buf0)\nreturn buf1"
    ).body
    workspace, _ = hoist_workspace(body)
    assert list(workspace) == kept


def test_names_come_once_in_order() -> None:
    assert names_in(ast.parse("a = b(a, c.d)\nb = e").body) == ["a", "b", "c", "e"]


def test_triton_source_is_kept_whole() -> None:
    kernel = parse(wrappers.TORCH_2_11).kernels["triton_poi_fused_exp_0"]
    assert isinstance(kernel, TritonKernel)
    assert kernel.source == wrappers.POINTWISE
