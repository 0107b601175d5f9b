import math

from hypothesis import given
from hypothesis import strategies as st

from adaexplore.candidate import Candidate
from adaexplore.search import SourceTraits

TRITON = """
import triton, triton.language as tl

@triton.jit
def first(x, BLOCK: tl.constexpr):
    tl.atomic_add(x, 1)

@triton.jit
def second(x, y):
    acc = tl.dot(x, y)

class ModelNew:
    def forward(self, x):
        first[(1,)](x, 16)
        second[lambda meta: (4,)](x, x)
"""


def traits(source):
    return SourceTraits(Candidate(source, "triton"))


def test_the_cell_counts_what_the_source_shows():
    length, kernels, launches, matrix, atomic = traits(TRITON).cell
    assert (kernels, launches, matrix, atomic) == (2, 2, 1, 1)
    assert 2 ** (length - 1) <= len(TRITON) < 2**length
    plain = TRITON.replace("tl.atomic_add", "tl.store").replace("tl.dot(x, y)", "x + y")
    assert traits(plain).cell[-2:] == (0, 0)


def test_a_changed_number_is_nearer_than_another_kernel():
    here = traits(TRITON).vector
    tuned = traits(TRITON.replace("16", "32")).vector
    other = traits("#pragma omp parallel for\nfor (long i = 0; i < n; ++i) out[i] = in[i];").vector
    assert 0 < math.dist(here, tuned) < 0.2 < math.dist(here, other)


@given(st.text())
def test_a_vector_has_length_one_unless_there_is_nothing(source):
    length = math.hypot(*traits(source).vector)
    assert math.isclose(length, 1.0) or length == 0.0
    assert traits(source).vector == traits(source).vector
