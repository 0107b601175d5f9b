import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.candidate import Candidate
from adaexplore.core.node import Node
from adaexplore.core.proposal import Proposal
from adaexplore.core.verdict.descriptor import Descriptor
from adaexplore.core.verdict.evaluation import Passed, Timing
from adaexplore.search import SourceTraits, traits_of
from adaexplore.search.traits import distance

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


def test_the_cell_counts_constructs_of_the_source():
    length, kernels, launches, matrix, atomic = traits(TRITON).cell
    assert (kernels, launches, matrix, atomic) == (2, 2, 1, 1)
    assert 2 ** (length - 1) <= len(TRITON) < 2**length
    plain = TRITON.replace("tl.atomic_add", "tl.store").replace("tl.dot(x, y)", "x + y")
    assert traits(plain).cell[-2:] == (0, 0)


def test_a_changed_constant_is_nearer_than_another_kernel():
    here = traits(TRITON).vector
    tuned = traits(TRITON.replace("16", "32")).vector
    other = traits("#pragma omp parallel for\nfor (long i = 0; i < n; ++i) out[i] = in[i];").vector
    assert 0 < math.dist(here, tuned) < 0.2 < math.dist(here, other)


@given(st.text())
def test_a_vector_has_length_one_unless_the_source_is_empty(source):
    length = math.hypot(*traits(source).vector)
    assert math.isclose(length, 1.0) or length == 0.0
    assert traits(source).vector == traits(source).vector


def node(source, **described):
    timing = Timing(10.0, (9.0, 11.0), {"eager": 20.0}, 2.0, (1.9, 2.1), 2.0, 7)
    found = Descriptor(**described) if described else None
    evaluation = Passed("fp32", 1e-7, timing, descriptor=found)
    return Node(1, 0, "large", Proposal(Candidate(source, "triton"), "x", ""), evaluation)


MADE_OF = {
    "own": (0.6, 0.3),
    "library": (0.1,),
    "launches": 3.0,
    "grid": (64, 2, 1),
    "block": (128, 1, 1),
    "bytes_per_s": 1e12,
    "instructions": ("atomic", "tensor-core"),
}


class TestCompiled:
    def test_the_cell_describes_the_compiled_kernels(self):
        assert traits_of(node(TRITON, **MADE_OF)).cell == (2, 2, 1, 8, 1, 1, 0)
        assert traits_of(node(TRITON)).cell == traits(TRITON).cell

    def test_profile_noise_leaves_the_cell_unchanged(self):
        jittered = {**MADE_OF, "own": (0.62, 0.27), "library": (0.1, 0.012), "launches": 4.0}
        assert traits_of(node(TRITON, **jittered)).cell == traits_of(node(TRITON, **MADE_OF)).cell

    def test_kernels_with_a_twentieth_of_the_time_count(self):
        found = traits_of(node(TRITON, own=(0.9, 0.05, 0.049), library=(0.05, 0.04)))
        assert found.cell[1:3] == (2, 1)

    def test_typical_maxima_weigh_the_same(self):
        # 15 launches, 65,536 programs, blocks of 256 threads, 10 TB/s.
        most = {"launches": 15.0, "grid": (65_536, 1, 1), "block": (256,), "bytes_per_s": 1e13}
        weights = [abs(value) for value in traits_of(node(TRITON, **most)).vector[64:] if value]
        assert weights == pytest.approx([math.sqrt(0.5 / 4)] * 4)

    def test_kernels_with_the_same_source_differ_by_their_compiled_form(self):
        here = traits_of(node(TRITON, **MADE_OF))
        fused = {**MADE_OF, "own": (1.0,), "library": (), "launches": 1.0, "instructions": ()}
        busier = {**MADE_OF, "bytes_per_s": 1.2e12}
        apart = distance(here, traits_of(node(TRITON, **fused)))
        assert 0 < distance(here, traits_of(node(TRITON, **busier))) < 0.05 < apart
        assert math.isclose(math.hypot(*here.vector), 1.0)

    def test_a_kernel_without_descriptor_is_compared_by_its_source(self):
        here, there = traits_of(node(TRITON, **MADE_OF)), traits_of(node(TRITON))
        assert math.isclose(distance(here, there), 0.0, abs_tol=1e-9)

    def test_an_empty_descriptor_is_valid(self):
        bare = traits_of(node(TRITON, form="f0"))
        assert bare.cell == (2, 0, 0, 1, 0, 0, 0)
        assert math.hypot(*bare.vector) <= 1.0 + 1e-9


def test_tokens_that_share_a_place_have_either_sign():
    # In every place that many share, signs are drawn apart.
    signs = {}
    for number in range(400):
        [(place, value)] = [
            (place, value) for place, value in enumerate(traits(f"t{number}").vector) if value
        ]
        signs.setdefault(place, []).append(value > 0)
    shared = [found for found in signs.values() if len(found) >= 8]
    assert len(shared) > 4
    assert all(0 < sum(found) < len(found) for found in shared)
