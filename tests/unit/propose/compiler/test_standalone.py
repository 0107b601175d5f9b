"""Candidates for a GPU, written from Inductor's source without one."""

from __future__ import annotations

import ast

import pytest
import references
import torch
import wrappers

from adaexplore.propose.compiler.autotuned import LaunchConfig
from adaexplore.propose.compiler.graph import Argument, Literal, Traced, UnsupportedError, Weight
from adaexplore.propose.compiler.inductor import Lowered
from adaexplore.propose.compiler.patches import launch_patches
from adaexplore.propose.compiler.reference import ReferenceFile
from adaexplore.propose.compiler.standalone import SizedGraph, write
from adaexplore.propose.compiler.tape import Tape

WARPS = {"num_warps": 4, "num_stages": 2}
LAUNCHES = {
    "triton_poi_fused_exp_0": LaunchConfig(
        {"XBLOCK": 1024}, WARPS, ("-((xnumel) // -(XBLOCK))", "1", "1"), ()
    ),
    "triton_red_fused_sum_1": LaunchConfig(
        {"XBLOCK": 8, "R0_BLOCK": 64},
        WARPS,
        ("y_grid_div", "-((xnumel) // -(XBLOCK))", "1"),
        ("y_grid_div = r0_numel + 1",),
    ),
    "triton_tem_fused_mm_2": LaunchConfig(
        {"BLOCK_M": 64}, WARPS, ("_grid_0", "_grid_1", "_grid_2"), ()
    ),
}


def candidate(
    wrapper: str,
    *,
    workspace: bool = False,
    reference: str = references.SOFTMAX,
    rows: tuple[int, ...] = (64,),
) -> str:
    works = [work(wrapper, n) for n in rows]
    return write("A title", ReferenceFile(reference), works, workspace=workspace).source


def work(wrapper: str, rows: int) -> SizedGraph:
    values = [torch.empty(rows, 100), torch.empty(100, 100)]
    traced = Traced(
        module=torch.fx.symbolic_trace(torch.nn.Identity()),
        sources=[Argument("x"), Weight("layers.0", "weight", True)],
        values=values,
        constants={},
        result="(out[0], out[1])",
        outputs=2,
        output_dtypes=(torch.float32, torch.float32),
        features=frozenset(),
        training=None,
    )
    return SizedGraph(traced, Lowered(wrapper, [0, 1], {}, Tape(values)), LAUNCHES)


@pytest.mark.parametrize("wrapper", [wrappers.TORCH_2_11, wrappers.TORCH_2_13])
def test_kernels_are_plain_triton_functions_with_their_launches(wrapper: str) -> None:
    source = candidate(wrapper)
    ast.parse(source)
    assert "triton_heuristics" not in source
    assert "extern_kernels" not in source
    assert "AsyncCompile" not in source
    assert "ReductionHint" not in source
    assert source.count("@triton.jit\ndef ") == 4
    assert "# a comment stays" in source
    assert "from torch._inductor.runtime.triton_helpers import libdevice" in source
    assert "grid=lambda XBLOCK: (-(6400 // -XBLOCK), 1, 1)" in source
    assert "grid=lambda XBLOCK, R0_BLOCK: (100 + 1, -(64 // -XBLOCK), 1)" in source
    assert "grid=lambda: (5, 1, 1)" in source
    assert 'blocks={"XBLOCK": 8, "R0_BLOCK": 64}, num_warps=4, num_stages=2' in source
    assert "torch.mm(buf0, reinterpret_tensor(layers_0_weight" in source
    assert "launch_1(" in source
    assert "buf1, buf0, buf0)" in source  # the template's grid is no argument any more
    assert "{'layers.0.weight': ((100, 100), (100, 1), torch.float32, 'cpu')}" in source
    assert "x.is_cpu" in source


@pytest.mark.parametrize("wrapper", [wrappers.TORCH_2_11, wrappers.TORCH_2_13])
def test_each_size_has_kernels_and_launches_of_its_own(wrapper: str) -> None:
    source = candidate(wrapper, rows=(64, 32), workspace=True)
    tree = ast.parse(source)
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    kernels = [name for name in functions if name.startswith("triton_")]
    assert sorted(kernels) == sorted(LAUNCHES | {f"{name}_size2": 0 for name in LAUNCHES})
    assert source.count("_launcher(\n") == 2 * candidate(wrapper).count("_launcher(\n")
    assert {"_call", "_call_size2", "_allocate", "_allocate_size2"} <= set(functions)
    first, second = (
        {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        for function in tree.body
        if getattr(function, "name", "").startswith("_call")
    )
    launched = [{name for name in names if name.startswith("launch_")} for names in (first, second)]
    assert len(launched[0]) == len(launched[1]) == len(LAUNCHES)
    assert not launched[0] & launched[1]


def test_workspace_is_allocated_apart() -> None:
    source = candidate(wrappers.TORCH_2_13, workspace=True)
    assert "def _call(x, layers_0_weight, buf1):" in source
    assert "def _allocate():" in source


def test_names_that_collide_are_refused() -> None:
    reference = references.SOFTMAX.replace(
        "class Model", "def reinterpret_tensor(x):\n    return x\n\n\nclass Model"
    ).replace(
        "class Model(nn.Module):", "class Model(nn.Module):\n    helper = reinterpret_tensor\n"
    )
    with pytest.raises(UnsupportedError, match="both define reinterpret_tensor"):
        candidate(wrappers.TORCH_2_13, reference=reference)


def test_unknown_helpers_are_refused() -> None:
    wrapper = wrappers.TORCH_2_13.replace("extern_kernels.mm(", "extern_kernels.odd_helper(")
    with pytest.raises(UnsupportedError, match="own helper odd_helper"):
        candidate(wrapper)


def test_every_launch_patch_changes_one_number() -> None:
    source = candidate(wrappers.TORCH_2_13)
    patches = launch_patches(source)
    notes = [patch.note for patch in patches]
    assert "triton_poi_fused_exp_0: XBLOCK 1024 -> 2048" in notes
    assert "triton_tem_fused_mm_2: num_stages 2 -> 3" in notes
    assert not any("BLOCK_M" in note for note in notes)
    assert len({patch.source for patch in patches}) == len(patches)
    for patch in patches:
        pairs = zip(source.splitlines(), patch.source.splitlines(), strict=True)
        assert sum(old != new for old, new in pairs) == 1
        ast.parse(patch.source)


def test_no_launches_no_patches() -> None:
    assert launch_patches(references.LINEAR_GELU) == []


def test_literals_are_written_out() -> None:
    value = torch.tensor([1.0, float("-inf"), float("nan")])
    traced = Traced(
        torch.fx.symbolic_trace(torch.nn.Identity()),
        [Argument("x"), Literal(value)],
        [torch.empty(3), value],
        {},
        "out[0]",
        1,
        (torch.float32,),
        frozenset(),
        None,
    )
    source = (
        "import torch\ndef call(args):\n    a, b = args\n    args.clear()\n    return (a * b,)\n"
    )
    lowered = Lowered(source, [0, 1], {}, Tape([]))
    text = write("t", ReferenceFile(references.SOFTMAX), [SizedGraph(traced, lowered, {})]).source
    scope: dict[str, object] = {}
    exec(text, scope)  # nothing but what this test wrote
    torch.testing.assert_close(scope["constant"], value, equal_nan=True)
