import json

from hypothesis import given
from hypothesis import strategies as st

from adaexplore.evaluation import Cost, Failed, Passed, Timing, from_json, rank, to_json

times = st.floats(1e-3, 1e9)
intervals = st.tuples(times, times)
costs = st.builds(Cost, st.floats(0, 1e5), st.floats(0, 1e5))
timings = st.builds(
    Timing,
    time_us=times,
    time_ci_us=intervals,
    baselines_us=st.fixed_dictionaries({"eager": times}, optional={"compile": times}),
    speedup=times,
    speedup_ci=intervals,
    speedup_eager=times,
    samples=st.integers(1, 10_000),
)
passed = st.builds(
    Passed,
    precision=st.sampled_from(["fp32", "tf32", "half"]),
    error=st.floats(0, 1),
    timing=timings,
    cost=costs,
    detail=st.text(),
)
FAILURES = [
    "compile_error",
    "runtime_error",
    "timeout",
    "out_of_memory",
    "wrong_output",
    "rejected",
    "infra_error",
]
failed = st.builds(
    Failed,
    status=st.sampled_from(FAILURES),
    reason=st.text(),
    detail=st.text(),
    error=st.none() | st.floats(0, allow_nan=False),
    cost=costs,
)

KEYS = {
    "status",
    "precision",
    "error",
    "time_us",
    "time_ci_us",
    "baselines_us",
    "speedup",
    "speedup_ci",
    "speedup_eager",
    "samples",
    "reason",
    "detail",
    "cost",
}


@given(evaluation=passed | failed)
def test_json_and_back_is_the_same(evaluation):
    assert from_json(json.loads(json.dumps(to_json(evaluation)))) == evaluation


@given(evaluation=passed | failed)
def test_every_key_is_always_there(evaluation):
    assert to_json(evaluation).keys() == KEYS


@given(evaluation=failed)
def test_a_failure_measured_nothing(evaluation):
    data = to_json(evaluation)
    for key in KEYS - {"status", "error", "reason", "detail", "cost"}:
        assert data[key] is None


@given(evaluation=passed)
def test_a_baseline_that_was_not_measured_is_null(evaluation):
    shown = to_json(evaluation)["baselines_us"]
    assert shown.keys() == {"eager", "compile"}
    assert (shown["compile"] is None) == ("compile" not in evaluation.timing.baselines_us)


@given(first=passed, second=passed)
def test_right_candidates_rank_by_speedup(first, second):
    assert (rank(first) < rank(second)) == (first.timing.speedup < second.timing.speedup)


@given(right=passed, other=failed)
def test_a_right_candidate_ranks_above_any_that_failed(right, other):
    assert rank(right) > rank(other)


def test_one_that_ran_ranks_above_one_that_did_not():
    ran = {"runtime_error", "timeout", "out_of_memory", "wrong_output"}
    for status in FAILURES:
        compiled, correct, _ = rank(Failed(status, "no"))
        assert compiled == (status in ran)
        assert not correct
