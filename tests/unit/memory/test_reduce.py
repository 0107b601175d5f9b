"""Reducing with tests that need no evaluator, and once with the real one."""

import ast
import itertools

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import Estimate, Failed, Fault, Mismatch, Passed
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.memory.reduce import ddmin, isolated, recurs, reduced, size
from elementwise import candidate, reference

MODULE = """
import math
import torch
from torch import nn

# a comment
LIMIT = 1024


def helper(a, b=2):
    return a + b


def kernel(x, n, scale, B=256):
    if n > 0:
        for j in range(B):
            x = x * scale
            x = bad(x + 1, n, key=LIMIT)
    else:
        x = helper(x)
    return x


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = 7

    def forward(self, x):
        y = helper(x)
        return kernel(y, self.size, 3.0, B=64)
"""


def calls_bad(source):
    return any(
        isinstance(node, ast.Call) and getattr(node.func, "id", "") == "bad"
        for node in ast.walk(ast.parse(source))
    )


@given(items=st.lists(st.integers(0, 99), max_size=30, unique=True), data=st.data())
def test_ddmin_keeps_what_is_needed_and_nothing_else(items, data):
    needed = data.draw(st.sets(st.sampled_from(items))) if items else set()

    def fails(kept):
        return needed <= set(kept)

    assert ddmin(items, fails) == [item for item in items if item in needed]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12))
def test_ddmin_leaves_nothing_that_can_be_left_out(items):
    total = sum(items)

    def fails(kept):
        return sum(kept) * 2 >= total

    kept = ddmin(items, fails)
    assert fails(kept)
    assert not any(fails(kept[:i] + kept[i + 1 :]) for i in range(len(kept)))


def test_what_has_no_part_in_the_failure_goes():
    result = reduced(MODULE, calls_bad)
    assert result.source == (
        "from torch import nn\n\n"
        "def kernel():\n    x = bad()\n\nclass ModelNew(nn.Module):\n    pass\n"
    )
    assert result.after == size(result.source)
    assert (result.before.lines, result.after.lines) == (21, 5)
    assert (result.before.nodes, result.after.nodes) == (90, 13)


def test_what_would_fail_by_an_unbound_name_is_not_evaluated():
    source = (
        "import torch\n\n"
        "def helper(x):\n    return x + 1\n\n"
        "class ModelNew:\n    def forward(self, x):\n        y = helper(x)\n"
        "        z = [torch.relu(i) for i in y]\n        return bad(z)\n"
    )
    seen = []

    def fails(text):
        seen.append(text)
        return "bad(z)" in text

    result = reduced(source, fails, whole_statements=True)
    assert not [text for text in seen if "helper(x)\n" in text and "def helper" not in text]
    assert not [text for text in seen if "torch." in text and "import torch" not in text]
    assert not [text for text in seen if "bad(z)" in text and "z = " not in text]
    for part in ("def helper", "y = helper", "z = [torch.relu", "bad(z)"):
        assert part in result.source


def test_parameters_go_with_the_arguments_of_their_calls():
    def fails(source):
        tree = ast.parse(source)
        functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
        launches = [c for c in calls if getattr(c.func, "id", "") == "kernel"]
        if "kernel" not in functions or not launches or not calls_bad(source):
            return False
        given = len(launches[0].args) + len(launches[0].keywords)
        return given == len(functions["kernel"].args.args)

    source = reduced(MODULE, fails).source
    assert "def kernel():" in source
    assert "kernel()" in source


def test_only_statements_go_where_expressions_are_to_stay():
    source = reduced(MODULE, calls_bad, whole_statements=True).source
    assert "bad(x + 1, n, key=LIMIT)" in source
    assert "helper" not in source


def test_bounds_hold_and_the_result_fails_at_any_of_them():
    whole = reduced(MODULE, calls_bad)
    sizes = []
    for most in (1, 2, 5, 20, whole.evaluations):
        asked = []

        def fails(source, asked=asked):
            asked.append(source)
            return calls_bad(source)

        result = reduced(MODULE, fails, most_evaluations=most)
        assert len(asked) == result.evaluations <= most
        assert calls_bad(result.source)
        sizes.append(result.after.nodes)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == whole.after.nodes
    ticks = itertools.count()
    hurried = reduced(MODULE, calls_bad, most_s=10, clock=lambda: float(next(ticks)))
    assert 0 < hurried.evaluations <= 10


def test_the_same_source_gives_the_same_result():
    assert reduced(MODULE, calls_bad) == reduced(MODULE, calls_bad)


def test_what_does_not_fail_stays_as_it_is():
    assert reduced(MODULE, lambda _: False).source == MODULE


def test_what_does_not_parse_is_refused():
    with pytest.raises(ValueError, match="does not parse"):
        reduced("class ModelNew(:", lambda _: True)


@given(
    st.sampled_from(["f'{x:>{w}} {y!r}'", "[*x, 2]", "x[..., None]", "lambda a, b=1: a", "{**x}"])
)
def test_every_kind_of_expression_can_be_cut(expression):
    source = f"y = {expression}\nclass ModelNew: pass\n"
    result = reduced(source, lambda text: "y =" in text)
    assert result.source.startswith("y = 0") or "f'" in expression


def fault(message, frame="kernel"):
    return Failed("compile_error", message, feedback=Fault("TypeError", message, 3, "y", frame))


def wrong(got):
    return Failed("wrong_output", "off", feedback=Mismatch("output", "own-0", 0.5, (1,), got, 1, 0))


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (fault("shape [32, 64] of 3"), fault("shape [1] of 17"), True),
        (fault("no attribute 'tanh'"), fault("no attribute 'relu'"), False),
        (fault("no"), fault("no", frame="forward"), False),
        (wrong(2.0), wrong(2.0), True),
        (wrong(2.0), wrong(3.0), False),
        (fault("no"), wrong(2.0), False),
        (Failed("timeout", "over"), Failed("timeout", "over"), False),
        (fault("no"), Passed("fp32", 0.0, Estimate(1.0, "memory", "sm_90")), False),
    ],
)
def test_a_failure_recurs_only_if_it_is_the_same(before, after, same):
    assert recurs(before, after) == same


def test_a_witness_is_brought_as_near_to_its_remedy_as_fails():
    remedy = "a = 1\nb = 2\nc = 3\nd = 4\n"
    witness = "a = 1\nb = 20\nc = 3\nd = 40\ne = 5\n"
    assert isolated(witness, remedy, lambda s: "b = 20" in s) == "a = 1\nb = 20\nc = 3\nd = 4\n"
    both = isolated(witness, remedy, lambda s: "= 20" in s and "= 40" in s)
    assert both == "a = 1\nb = 20\nc = 3\nd = 40\n"
    assert isolated(witness, remedy, lambda s: "e = 5" in s and "= 2\n" in s) == remedy + "e = 5\n"
    assert isolated("a = 0\n", "a = 1\n", lambda s: "0" in s) == "a = 0\n"


def test_lines_stand_for_those_that_are_like_them():
    remedy = "def f(x, y):\n    v = load(x)\n    w = reduce(v, add)\n    store(y, w)\n"
    witness = "def f(x):\n    w = reduce(1, given)\n"
    near = isolated(witness, remedy, lambda s: "given" in s)
    assert near == remedy.replace("reduce(v, add)", "reduce(1, given)")
    agree = isolated(witness, remedy, lambda s: "given" in s and ("x, y" in s) == ("store" in s))
    assert agree == near
    gone = isolated(witness, remedy, lambda s: "load" not in s)
    assert gone == remedy.replace("    v = load(x)\n", "")


@given(*[st.lists(st.sampled_from("abcd"), max_size=6)] * 2)
def test_all_of_a_witness_can_be_put_back(witness, remedy):
    texts = ["".join(f"{line} = 1\n" for line in lines) for lines in (witness, remedy)]
    assume(texts[0] != texts[1])
    assert isolated(*texts, lambda s: s == texts[0]) == texts[0]


@pytest.mark.slow
def test_a_kernel_that_fails_is_reduced_by_the_real_evaluator(server):
    tanh = reference("torch.tanh(x) * 2")
    source = candidate("z = tl.exp(x)\nz = z * z\ny = tl.tanh(x) * 2\n")
    problem = Problem("p", tanh, "triton", "cpu", target="sm_90")
    evaluator = OfflineEvaluator(server, problem, timeout_s=60.0, memory_bytes=4 << 30)

    def verdict(text):
        return evaluator.evaluate(Candidate(text, "triton"))

    try:
        failed = verdict(source)
        result = reduced(source, lambda text: recurs(failed, verdict(text)), most_evaluations=25)
        assert recurs(failed, verdict(result.source))
    finally:
        evaluator.close()
    assert "tl.tanh" in result.source
    assert result.after.nodes < result.before.nodes
