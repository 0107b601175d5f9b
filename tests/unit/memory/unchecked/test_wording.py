import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.memory.files import BUNDLED, load_memory, memory_path
from adaexplore.memory.unchecked.wording import objection

PROGRAM = """
import triton
import triton.language as tl

LIMIT = 3


@triton.jit
def gelu_rows(src, dst, n_cols, mask, TILE: tl.constexpr):
    rowSum = tl.load(src, mask=mask, other=0.0)
    tl.store(dst, rowSum)


class ModelNew:
    def forward(self, x, eps=1e-5):
        self.running = x
        gelu_rows[(1,)](x, x, 7, True, TILE=64, num_warps=4)
"""
OWN = ["LIMIT", "gelu_rows", "src", "dst", "n_cols", "rowSum", "TILE", "running", "eps"]
PROSE = st.lists(
    st.sampled_from(
        [
            "A",
            "block",
            "takes",
            "no",
            "such",
            "number:",
            "convert",
            "it,",
            "and",
            "mask",
            "the",
            "rest",
        ]
    ),
    min_size=1,
    max_size=12,
).map(" ".join)


@pytest.mark.parametrize("rule", load_memory(memory_path(BUNDLED)), ids=lambda rule: rule.name)
def test_bundled_statements_name_no_program_of_their_own(rule):
    assert objection(rule.statement, rule.reference, rule.witness, rule.remedy) == ""


@given(PROSE, st.sampled_from(OWN), PROSE)
def test_names_that_only_this_program_has_are_refused_in_code(before, name, after):
    for code in (name, f"tl.load({name} + 1)", f"x[{name}]"):
        assert repr(name) in objection(f"{before} `{code}` {after}", PROGRAM)
        assert objection(f"{before} `{code}` {after}", "import torch\n") == ""


@pytest.mark.parametrize("name", ["gelu_rows", "n_cols", "rowSum", "LIMIT", "TILE"])
def test_and_in_prose_where_they_are_no_words(name):
    assert repr(name) in objection(f"Do not load {name} twice.", PROGRAM)


@pytest.mark.parametrize(
    "statement",
    [
        "`tl.load` takes `mask` and `other`.",
        "Give `num_warps` a power of two.",
        "The source of a running sum is a block.",
        "`x` is a block in `tl.exp(x)`.",
        "Tiles of 128 x 64 fit; `tl.dot` wants (16, 16) or more.",
        "A block has 1,048,576 elements at most.",
        "`float('inf')` and `triton.cdiv` are there; `while` and `for` too.",
    ],
)
def test_what_everybody_has_may_be_named(statement):
    assert objection(statement, PROGRAM) == ""


@given(PROSE, st.integers(1, 9999))
def test_lines_are_refused(prose, number):
    for place in (f"line {number}", f"at {number}:4", f"Lines {number}"):
        assert "say what holds for any" in objection(f"{prose} {place}", PROGRAM)


@given(PROSE, st.lists(st.integers(1, 5000), min_size=2, max_size=4))
def test_shapes_are_refused_unless_they_are_tiles(prose, sides):
    tile = all(side & (side - 1) == 0 and side <= 512 for side in sides)
    for shape in (f"({', '.join(map(str, sides))})", " x ".join(map(str, sides)), str(sides)):
        assert (objection(f"{prose} {shape}", PROGRAM) == "") == tile


def test_statements_are_short_and_there():
    assert "empty" in objection("  \n", PROGRAM)
    assert objection("word " * 47 + "words", PROGRAM) == ""
    assert "241 characters; 240 are allowed" in objection("word " * 47 + "a word", PROGRAM)
