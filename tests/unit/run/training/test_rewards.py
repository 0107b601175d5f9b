import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.core.evaluation import Failed, Passed, Profile, Timing
from adaexplore.run.training.rewards import REWARDS, reward_named


def passed(eager, labels=(), share=None):
    """A candidate `eager` times as fast as eager, and half as fast as the strongest baseline."""
    timing = Timing(1.0, (1.0, 1.0), {"eager": eager}, 0.5, (0.5, 0.5), eager, 10)
    profile = Profile((), 1.0, share) if share is not None else None
    return Passed("fp32", 1e-7, timing, labels=labels, profile=profile)


STAIRS = {
    0.99: -0.1,
    1.0: 0.2,
    1.19: 0.2,
    1.2: 0.4,
    1.5: 0.6,
    1.99: 0.6,
    2.0: 0.8,
    3.0: 1.0,
    9: 1.0,
}
CASES = [
    *(("dr-kernel-staircase", passed(speedup), reward) for speedup, reward in STAIRS.items()),
    ("dr-kernel-staircase", Failed("compile_error", "no"), -0.5),
    ("dr-kernel-staircase", Failed("runtime_error", "no"), -0.3),
    ("dr-kernel-staircase", Failed("wrong_output", "no"), -0.3),
    ("dr-kernel-staircase", Failed("rejected", "no"), -1.0),
    ("dr-kernel-staircase", Failed("timeout", "no"), -1.0),
    ("dr-kernel-staircase", passed(5.0, ("decoy",)), -1.0),
    ("dr-kernel-weighted", passed(1.0), 0.5),
    ("dr-kernel-weighted", passed(1.009), 0.5),
    ("dr-kernel-weighted", passed(1.01), 1.0),
    ("dr-kernel-weighted", Failed("wrong_output", "no"), 0.0),
    ("dr-kernel-weighted", passed(5.0, ("decoy",)), 0.0),
    ("dr-kernel-speedup", passed(0.5), 0.75),
    ("dr-kernel-speedup", passed(2.0, share=0.5), 1.75),
    ("dr-kernel-speedup", passed(30.0), 2.0),
    ("dr-kernel-speedup", Failed("wrong_output", "no"), 0.0),
    ("dr-kernel-speedup", passed(5.0, ("decoy",)), 0.0),
    ("kernrl", Failed("compile_error", "no"), -0.5),
    ("kernrl", Failed("wrong_output", "no"), -0.25),
    ("kernrl", passed(0.5), -0.25),
    ("kernrl", passed(1.0), 0.0),
    ("kernrl", passed(2.5), 1.5),
    ("kernrl", passed(7.0), 2.0),
    ("tritonforge", Failed("compile_error", "no"), 0.0),
    ("tritonforge", Failed("wrong_output", "no"), 0.1),
    ("tritonforge", passed(0.5), 0.3),
    ("tritonforge", passed(1.5), 0.8),
    ("tritonforge", passed(9.0), 2.3),
    ("log", Failed("wrong_output", "no"), 0.05),
    ("published", passed(10.0), 1.6),
]


@pytest.mark.parametrize(("name", "evaluation", "reward"), CASES)
def test_a_reward_is_its_authors(name, evaluation, reward):
    assert REWARDS[name](evaluation) == pytest.approx(reward)


@pytest.mark.parametrize("name", REWARDS)
@pytest.mark.parametrize("status", ["infra_error", "not_run", "reported"])
def test_what_nobody_judged_has_no_reward(name, status):
    assert REWARDS[name](Failed(status, "the machine broke down")) is None


@pytest.mark.parametrize("name", REWARDS)
def test_an_unknown_name_is_told_the_names(name):
    with pytest.raises(BadInputError, match=name):
        reward_named("fastest")
