import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.core.verdict.evaluation import Estimate, Failed, Passed, Profile, Timing
from adaexplore.search.named_rewards import REWARDS, reward_of


def passed(eager, *labels, like_for_like=0.5, share=None):
    timing = Timing(1.0, (1.0, 1.0), {}, like_for_like, (0.5, 0.5), eager, 100)
    profile = None if share is None else Profile((), 1.0, share)
    return Passed("fp32", 1e-7, timing, labels=labels, profile=profile)


# name: compile_error, rejected, runtime_error, wrong_output, out_of_memory, timeout
FAILURES = {
    "log": (0.0, 0.0, 0.05, 0.05, 0.05, 0.05),
    "published": (0.0, 0.0, 0.05, 0.05, 0.05, 0.05),
    "drkernel-staircase": (-0.5, -1.0, -0.3, -0.3, -0.3, -1.0),
    "drkernel-weighted": (0.0,) * 6,
    "drkernel-speedup": (0.0,) * 6,
    "kernrl": (-0.5, -0.5, -0.25, -0.25, -0.25, -0.25),
    "tritonforge": (0.0, 0.0, 0.1, 0.1, 0.1, 0.1),
}
STATUSES = (
    "compile_error",
    "rejected",
    "runtime_error",
    "wrong_output",
    "out_of_memory",
    "timeout",
)


def test_there_is_a_row_for_every_reward():
    assert FAILURES.keys() == REWARDS.keys()


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_has_the_reward_of_its_stage(name):
    assert [reward_of(name, Failed(s, "why")) for s in STATUSES] == pytest.approx(FAILURES[name])


# speedup over eager: staircase, weighted, speedup, kernrl, tritonforge
SPEEDUPS = {
    0.5: (-0.1, 0.5, 0.75, -0.25, 0.3),
    0.999: (-0.1, 0.5, 0.9995, -0.0005, 0.3),
    1.0: (0.2, 0.5, 1.0, 0.0, 0.3),
    1.009: (0.2, 0.5, 1.0045, 0.009, 0.309),
    1.01: (0.2, 1.0, 1.005, 0.01, 0.31),
    1.2: (0.4, 1.0, 1.1, 0.2, 0.5),
    1.49: (0.4, 1.0, 1.245, 0.49, 0.79),
    1.5: (0.6, 1.0, 1.25, 0.5, 0.8),
    2.0: (0.8, 1.0, 1.5, 1.0, 1.3),
    2.99: (0.8, 1.0, 1.995, 1.99, 2.29),
    3.0: (1.0, 1.0, 2.0, 2.0, 2.3),
    50.0: (1.0, 1.0, 2.0, 2.0, 2.3),
}
BY_SPEEDUP = (
    "drkernel-staircase",
    "drkernel-weighted",
    "drkernel-speedup",
    "kernrl",
    "tritonforge",
)


@pytest.mark.parametrize("speedup", SPEEDUPS)
def test_a_correct_candidate_has_the_reward_of_its_speedup_over_eager(speedup):
    """The like-for-like speedup is 0.5 throughout: none of the five may use it."""
    found = [reward_of(name, passed(speedup)) for name in BY_SPEEDUP]
    assert found == pytest.approx(SPEEDUPS[speedup])


def test_the_profiling_reward_adds_half_the_share_of_own_kernels():
    assert reward_of("drkernel-speedup", passed(2.0, share=0.6)) == pytest.approx(1.8)
    assert reward_of("drkernel-weighted", passed(2.0, share=0.6)) == 1.0


@pytest.mark.parametrize("label", ["decoy", "no-custom-kernel", "own-kernels-not-launched"])
def test_dr_kernel_gives_a_decoy_its_penalty(label):
    rewards = [reward_of(name, passed(3.0, label, share=1.0)) for name in BY_SPEEDUP[:3]]
    assert rewards == [-1.0, 0.0, 0.0]


def test_a_label_that_is_a_remark_is_no_decoy():
    assert reward_of("drkernel-staircase", passed(3.0, "library:cublas")) == 1.0


@pytest.mark.parametrize("name", REWARDS)
@pytest.mark.parametrize("status", ["infra_error", "not_run", "reported"])
def test_what_says_nothing_about_a_candidate_has_no_reward(name, status):
    assert reward_of(name, Failed(status, "why")) is None


@pytest.mark.parametrize("name", REWARDS)
def test_an_estimate_has_the_reward_of_a_speedup_of_1(name):
    guess = Passed("fp32", 1e-7, Estimate(1.0, "memory", "sm_90"))
    assert reward_of(name, guess) == reward_of(name, passed(1.0, like_for_like=1.0))


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(BadInputError, match="--reward best: no such reward; there are log, publ"):
        reward_of("best", passed(1.0))
