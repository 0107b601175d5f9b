"""Smaller sizes: legal, cheap, uneven where possible, and found without names."""

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Problem
from adaexplore.evaluate.offline import shrink
from adaexplore.evaluate.offline.shrink import from_job, variants
from adaexplore.evaluate.offline.sizes import Replaced, follow
from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import check_outputs, tensors_of
from fast_set import of_which_fast

EXAMPLES = sorted((Path(__file__).parents[4] / "examples" / "problems").glob("*.py"))

LINEAR = """
import torch
from torch import nn

rows = 4096
inner, outer = 8192, 2048


class Model(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.rand(rows, inner)]


def get_init_inputs():
    return [inner, outer]
"""

GROUPED = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, groups, kernel):
        super().__init__()
        self.conv = nn.Conv3d(channels, 2 * channels, kernel, groups=groups)
        self.norm = nn.GroupNorm(groups, 2 * channels)

    def forward(self, x):
        return self.norm(self.conv(x))


def get_inputs():
    return [torch.rand(128, 96, 20, 48, 48)]


def get_init_inputs():
    return [96, 16, 3]
"""


def shapes(source: str, folder: Path) -> list[tuple[int, ...]]:
    """Return the inputs' shapes, after a run on the CPU with outputs that can be compared."""
    instance = Instance.load(source, "Model", device="cpu", seed=0, mode="as-built", folder=folder)
    inputs = instance.inputs(1)
    check_outputs("problem.py", instance(inputs), instance.device)
    return [tuple(t.shape) for t in tensors_of(inputs)]


def by_name(source: str) -> dict[str, shrink.SizeVariant]:
    return {variant.name: variant for variant in variants(source)}


def test_an_output_without_elements_stays_one_and_no_other_becomes_one(tmp_path):
    beside = LINEAR.replace("return torch.relu(self.linear(x))", "return self.linear(x), x[:0]")
    assert shapes(by_name(beside)["small"].source, tmp_path)[0][0] < 4096
    late = LINEAR.replace("return torch.relu(self.linear(x))", "return self.linear(x)[512:]")
    assert shapes(by_name(late)["small"].source, tmp_path)[0][0] > 512


@pytest.mark.parametrize(
    "name", of_which_fast([file.stem for file in EXAMPLES], "mlp_block", "topk_router")
)
def test_every_example_shrinks_within_the_budget_and_runs(name, tmp_path):
    file = next(file for file in EXAMPLES if file.stem == name)
    found = by_name(file.read_text(encoding="utf-8"))
    assert found["small"].fits
    assert found["odd"].fits
    small, odd = (shapes(found[size].source, tmp_path) for size in ("small", "odd"))
    assert small != odd


def test_sizes_are_halved_so_that_they_keep_their_factors(tmp_path):
    small = by_name(LINEAR)["small"]
    ((rows, inner),) = shapes(small.source, tmp_path)
    assert 4096 % rows == 8192 % inner == 0
    assert rows * inner < 2**19
    assert inner >= 128  # several blocks of most kernels


def test_odd_sizes_are_prime_where_that_is_legal():
    odd = by_name(LINEAR)["odd"]
    assert {r.name for r in odd.replaced} == {"rows", "inner", "outer"}
    for r in odd.replaced:
        assert all(r.new % d for d in range(2, r.new))


@pytest.mark.parametrize("factor", [3, 5, 7, 9])
def test_where_no_odd_size_is_legal_an_odd_multiple_of_a_part_is_taken(tmp_path, factor):
    only = f"assert x.shape[1] // (x.shape[1] & -x.shape[1]) in (1, {factor})"
    source = LINEAR.replace(
        "        return torch.relu", f"        {only}\n        return torch.relu"
    )
    ((_, inner),) = shapes(by_name(source)["odd"].source, tmp_path)
    assert inner // (inner & -inner) == factor


def test_divisibility_between_sizes_is_kept(tmp_path):
    found = by_name(GROUPED)
    for name in ("small", "odd"):
        assert found[name].fits
        ((_, channels, *size),) = shapes(found[name].source, tmp_path)
        assert channels < 96
    assert any(n % 2 for n in size)


def test_literals_of_one_value_change_together():
    small = by_name(GROUPED)["small"]
    changed = {r.old: r.new for r in small.replaced}
    assert f"return [{changed[96]}, " in small.source
    assert f", {changed[96]}, " in small.source.partition("torch.rand(")[2].splitlines()[0]


def test_a_group_of_channels_stays_a_group(tmp_path):
    # one channel per group would be normalized to nothing
    source = LINEAR.replace(
        "self.linear = ", "self.norm = nn.GroupNorm(256, outer)\n        self.linear = "
    )
    source = source.replace("torch.relu(self.linear(x))", "self.norm(self.linear(x))")
    source = source.replace("GroupNorm(256", "GroupNorm(groups").replace(
        "(self, inner, outer)", "(self, inner, outer, groups)"
    )
    source = (
        source.replace("return [inner, outer]", "return [inner, outer, groups]")
        + "\ngroups = 256\n"
    )
    for name in ("small", "odd"):
        variant = by_name(source)[name]
        assert variant.fits
        new = {r.name: r.new for r in variant.replaced}
        assert new["outer"] == 8 * new["groups"]


def test_batch_only_changes_no_other_size(tmp_path):
    batch_only = by_name(GROUPED)["batch-only"]
    ((batch, *others),) = shapes(batch_only.source, tmp_path)
    assert batch < 128
    assert others == [96, 20, 48, 48]


@pytest.mark.parametrize(("batch", "reduced"), [(96, 3), (127, 3), (128, 2), (250, 3)])
def test_a_block_that_does_not_divide_the_batch_does_not_divide_the_reduced_one(batch, reduced):
    batch_only = by_name(GROUPED.replace("128", str(batch)))["batch-only"]
    assert [(r.old, r.new) for r in batch_only.replaced] == [(batch, reduced)]


def test_the_problems_own_sizes_have_their_cost():
    own = by_name(LINEAR)["own"]
    assert (own.source, own.replaced) == (LINEAR, ())
    assert own.flops == 2 * 4096 * 8192 * 2048


def test_a_size_of_a_parameter_is_not_a_batch():
    source = LINEAR.replace("torch.rand(rows, inner)", "torch.rand(inner, inner)")
    assert "batch-only" not in by_name(source)


def test_only_numbers_change():
    small = by_name(LINEAR)["small"]
    before, after = LINEAR.splitlines(), small.source.splitlines()
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert [a.partition("=")[0] for a, _ in changed] == ["rows ", "inner, outer "]


@pytest.mark.parametrize("newline", ["\r\n", "\r", "\n"])
def test_any_newline_and_any_text_before_a_number(newline):
    source = LINEAR.replace("rows = 4096", "größe = '²' ; rows = 4_096").replace("\n", newline)
    small = by_name(source)["small"]
    new = next(r.new for r in small.replaced if r.name == "rows")
    assert f"größe = '²' ; rows = {new}{newline}" in small.source


def test_small_and_negative_numbers_are_not_sizes():
    source = LINEAR.replace("rows = 4096", "rows = 4096\ndepth = 12\nlowest = -4096")
    for variant in variants(source):
        assert "depth = 12\nlowest = -4096\n" in variant.source


def test_indices_stay_in_range(tmp_path):
    # 1000 halves to 31 and 1100 to 18: the meta device would not mind
    source = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.table = nn.Embedding(rows, 1024)

    def forward(self, ids):
        return self.table(ids)


def get_inputs():
    return [torch.randint(0, 1000, (512, 512))]


def get_init_inputs():
    return [1100]
"""
    for name in ("small", "odd"):
        shapes(by_name(source)[name].source, tmp_path)


def test_a_module_that_reads_values_of_tensors():
    source = LINEAR.replace(
        "self.linear = ",
        "self.rate = [float(r) for r in torch.linspace(0, 1, 3)]\n"
        "        self.steps = torch.ones(3).sum().item() if torch.ones(3).any() else 1\n"
        "        self.linear = ",
    )
    assert by_name(source)["small"].fits


def test_a_small_problem_is_its_own_small_variant():
    source = LINEAR.replace("4096", "5").replace("8192, 2048", "9, 10")
    (small,) = variants(source)  # "own" is the same
    assert (small.name, small.source, small.replaced) == ("small", source, ())


def test_a_problem_that_stays_large_is_returned_with_its_cost():
    source = LINEAR.replace("nn.Linear(inner, outer)", "nn.Linear(8192, 2 ** 11)")
    small = by_name(source)["small"]
    assert not small.fits
    assert small.elements > 2**19
    assert {r.name: r.new for r in small.replaced}["rows"] == 2


@settings(max_examples=20, deadline=None)
@given(
    rows=st.integers(1, 3000),
    heads=st.integers(1, 40),
    width=st.integers(1, 600),
    tail=st.sampled_from(["", "  # 16 rows", " ; other = 3"]),
)
@pytest.mark.slow
def test_a_variant_is_the_source_with_its_constants_replaced(rows, heads, width, tail):
    source = LINEAR.replace("rows = 4096", f"rows = {rows}{tail}").replace(
        "inner, outer = 8192, 2048", f"heads = {heads}\nouter = {width}\ninner = heads * {width}"
    )
    for variant in variants(source):
        assert variant.fits or variant.name in ("batch-only", "own")
        assert follow(source, variant.replaced) == variant.source
        ast.parse(variant.source)


def test_a_reference_that_cannot_run_has_a_reason():
    with pytest.raises(BadProblemError, match=r"problem\.py, line 15: .*\[4096, 7\]"):
        variants(LINEAR.replace("torch.rand(rows, inner)", "torch.rand(rows, 7)"))


def test_the_job_reports_code_that_ends_its_process(server):
    entry = "adaexplore.evaluate.offline.shrink:job"

    def asked(source):
        return {"problem": Problem("example", source, "triton", "cpu").to_json()}

    reply = run_job(server, entry, asked(LINEAR), 60.0)
    assert list(from_job(json.loads(json.dumps(reply)))) == variants(LINEAR)
    bad = run_job(server, entry, asked(LINEAR + "\nraise SystemExit(3)"), 60.0)
    assert bad["variants"] == []


class TestFollow:
    REPLACED = (Replaced("batch_size", 128, 8), Replaced("N", 128, 16), Replaced("", 64, 9))

    def test_constants_of_the_same_name_and_value_are_replaced(self):
        source = "BATCH_SIZE = 128\nn: int = 128  # 128\nbatch_size = 64\n"
        assert (
            follow(source, self.REPLACED) == "BATCH_SIZE = 8\nn: int = 16  # 128\nbatch_size = 64\n"
        )

    @pytest.mark.parametrize(
        "source",
        [
            "BLOCK = 128",  # equal by chance
            "OTHER = 64",  # a literal of the problem has no name to go by
            "def f():\n    N = 128",
            "N = '128'",
            "N = 128.0",
            "not Python (",
            "N = 128\0",
        ],
    )
    def test_anything_else_stays(self, source):
        assert follow(source, self.REPLACED) == source
