"""The numbers that can be varied."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Problem
from adaexplore.propose.tuner.space import space_of

PROBLEM = Problem("example", "x = torch.randn(64, 4096)", "triton", "cuda")

LAUNCHED = """
import triton
import triton.language as tl

ROWS = 64
WARPS = 8
N = 1000


@triton.jit
def kernel(x, n, ROWS: tl.constexpr, BLOCK: tl.constexpr = 1024, flag: tl.constexpr = True):
    pass  # ü: bytes are not characters


def call(x, depth=3):
    BLOCK, other = 2048, 512
    kernel[(1,)](x, N, ROWS, BLOCK=BLOCK, num_warps=WARPS, num_stages=depth)
"""


def choices(source, language="triton", problem=PROBLEM):
    space = space_of(Candidate(source, language), problem)
    return {parameter.name: parameter.choices for parameter in space.parameters}


def test_what_a_kernel_is_launched_with_and_where_it_comes_from():
    assert choices(LAUNCHED) == {
        "num_warps": (2, 4, 8, 16, 32),
        "BLOCK": (256, 512, 1024, 2048, 4096),
        "BLOCK#2": (512, 1024, 2048, 4096, 8192),
        "num_stages": (1, 2, 3, 4, 5),
    }


def test_a_size_of_the_problem_is_varied_only_if_its_name_says_so():
    assert "ROWS" in choices(LAUNCHED, problem=Problem("p", "", "triton", "cuda"))
    assert "BLOCK" in choices(LAUNCHED, problem=Problem("p", "1024, 2048", "triton", "cuda"))


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ('[triton.Config({"BM": 64, "BN": 32}, num_warps=4)]', {"BM", "BN", "num_warps"}),
        ('[triton.Config({"BM": 64}, num_warps=4), triton.Config({"BM": 32})]', set()),
        ('[triton.Config({"BM": 64}, num_warps=w) for w in (2, 4)]', set()),
    ],
)
def test_a_list_of_several_configurations_is_left_alone(config, names):
    source = f"@triton.autotune(configs={config}, key=[])\n@triton.jit\ndef k(x): pass\n"
    assert choices(source).keys() == names


def test_helion_and_the_compiler_s_own_launchers():
    helion = "@helion.kernel(config=helion.Config(block_sizes=[32, 16], num_warps=4))\ndef k(x): 0"
    assert choices(helion, "helion").keys() == {"block_sizes", "block_sizes#2", "num_warps"}
    launcher = "go = _launcher(kernel, blocks={'XBLOCK': 512}, num_warps=4, num_stages=1)"
    assert choices(launcher).keys() == {"XBLOCK", "num_warps", "num_stages"}


CPP = '''
SOURCE = """
#define UNROLL 4
constexpr int TILE = 64;
static const int64_t width = 4096;
constexpr int odd = 48;
"""
OTHER = "constexpr int TILE = 8;\\n#define CHUNK 16\\n"
'''


@pytest.mark.parametrize("language", ["cpp", "cuda"])
def test_constants_and_macros_of_cpp(language):
    assert choices(CPP, language) == {
        "UNROLL": (1, 2, 4, 8, 16),
        "TILE": (16, 32, 64, 128, 256),
        "width": (1024, 2048, 4096, 8192, 16384),
        "TILE#2": (2, 4, 8, 16, 32),
        "CHUNK": (4, 8, 16, 32, 64),
    }
    assert choices(CPP) == {}


@given(st.data())
def test_a_variant_has_the_values_and_is_otherwise_the_same(data):
    source, language = data.draw(st.sampled_from([(LAUNCHED, "triton"), (CPP, "cpp")]))
    space = space_of(Candidate(source, language), PROBLEM)
    assert space.variant({}) == space.variant(space.present) == source
    values = {p.name: data.draw(st.sampled_from(p.choices)) for p in space.parameters}
    changed = space.variant(values)
    ast.parse(changed)
    again = space_of(Candidate(changed, language), PROBLEM)
    unchanged = {name for name, value in values.items() if value in (1,)}
    assert {n: v for n, v in values.items() if n not in unchanged}.items() <= again.present.items()


def test_what_does_not_parse_has_no_numbers():
    assert space_of(Candidate("def", "triton"), PROBLEM).size == 1
