from adaexplore.core.verdict.evaluation import KernelUse, Launch, Profile
from adaexplore.evaluate.kernels.describe import (
    OwnKernels,
    Part,
    describe,
    measured_parts,
    read_launched,
)
from adaexplore.evaluate.wire.kernel_messages import LaunchedKernel, LaunchedKernels
from adaexplore.languages.fingerprint import fingerprint

SOURCE = "@triton.jit\ndef k(x):\n    tl.atomic_add(x, 1)\n"
LAUNCH = Launch((64, 2, 1), (128, 1, 1), 32, 0)


def test_shares_launches_and_grid():
    uses = (
        KernelUse("k", "custom", 2.0, 6.0, LAUNCH),
        KernelUse("gemm", "cublas", 1.0, 3.0, Launch((9, 1, 1), (256, 1, 1), 64, 0)),
        KernelUse("j", "custom", 1.0, 0.999),
        KernelUse("fill", "aten", 1.0, 0.001),
    )
    found = describe(SOURCE, OwnKernels(), measured_parts(Profile(uses, 10.0, 0.7)), 2e12)
    assert (found.own, found.library) == ((0.6, 0.1), (0.3,))
    assert (found.launches, found.grid, found.block) == (5.0, (64, 2, 1), (128, 1, 1))
    assert found.bytes_per_s == 2e12


def test_shares_are_rounded_to_a_thousandth_and_smaller_ones_left_out():
    uses = tuple(KernelUse("k", "custom", 1.0, time_us) for time_us in (2.0, 1.0, 0.0001))
    found = describe(SOURCE, OwnKernels(), measured_parts(Profile(uses, 3.0001, 0.7)), 0.0)
    assert found.own == (0.667, 0.333)


def test_instructions_come_from_the_compiled_code_if_it_is_known():
    own = OwnKernels.of([("k", "c0de", ["reduction"]), ("k", "f00d", ["dot"])])
    assert describe(SOURCE, own, [], 0.0).instructions == ("dot", "reduction")
    assert describe(SOURCE, OwnKernels(), [], 0.0).instructions == ("atomic",)


def test_equal_kernel_code_gives_the_same_hash():
    own = OwnKernels.of([("k", "c0de", [])])
    other = describe(SOURCE.replace("1", "2"), own, [], 0.0)
    assert describe(SOURCE, own, [], 0.0).code == other.code != fingerprint(SOURCE)
    assert describe(SOURCE, own, [], 0.0).form == fingerprint(SOURCE) != other.form


def test_a_candidate_without_a_profile_is_described_by_its_source():
    found = describe(SOURCE, OwnKernels(), [Part(True, 0.0)], float("inf"))
    assert (found.own, found.library, found.bytes_per_s) == ((), (), 0.0)
    assert found.code == found.form


def test_long_names_from_the_candidates_process_are_cut():
    kernel = LaunchedKernel("k" * 1000, "c0de", ("dot",))
    [(name, codes)] = read_launched(LaunchedKernels((kernel,))).codes.items()
    assert (len(name), codes) == (80, ["c0de"])
