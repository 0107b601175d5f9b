import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.verdict.descriptor import Descriptor
from adaexplore.core.verdict.evaluation import (
    Autotuning,
    Conditions,
    Cost,
    Estimate,
    Failed,
    Fault,
    KernelUse,
    Launch,
    Mismatch,
    Paired,
    Passed,
    Profile,
    PublishedVerdict,
    Roofline,
    TakenOver,
    Timing,
    TriedConfiguration,
    WorkloadTiming,
    rank,
)
from adaexplore.core.verdict.evaluation_json import evaluation_from_json, evaluation_to_json
from adaexplore.core.verdict.uses import OUTCOMES, Use

times = st.floats(1e-3, 1e9)
intervals = st.tuples(times, times)
costs = st.builds(Cost, st.floats(0, 1e5), st.floats(0, 1e5))
paired = st.builds(Paired, times, times, intervals)
conditions = st.builds(
    Conditions,
    st.floats(0, 100),
    st.none() | st.integers(0, 5000),
    st.none() | st.integers(0, 120),
    st.lists(st.text()).map(tuple),
)
timings = st.builds(
    Timing,
    time_us=times,
    time_ci_us=intervals,
    baselines_us=st.fixed_dictionaries(
        {"eager": times}, optional={"compile": times, "more": times}
    ),
    speedup=times,
    speedup_ci=intervals,
    speedup_eager=times,
    samples=st.integers(1, 10_000),
    parent=st.none() | paired,
    conditions=st.none() | conditions,
    speedup_compile=st.none() | times,
    allowance=st.tuples(st.floats(0.01, 1.0), st.floats(1.0, 20.0)),
    strongest=st.sampled_from(["", "eager"]),
)
bounds = st.sampled_from(["memory", "compute", "overhead"])
estimates = st.builds(Estimate, times, bounds, st.sampled_from(["sm_80", "sm_90"]), st.booleans())
counts = st.integers(0, 1 << 20)
taken_over = st.none() | st.builds(TakenOver, st.text(), st.floats(0, 1e10))
sizes = st.tuples(counts, counts, counts)
launches = st.builds(
    Launch, sizes, sizes, counts, counts, st.none() | st.floats(0, 1), st.none() | counts
)
kernels = st.builds(
    KernelUse,
    name=st.text(),
    origin=st.sampled_from(["custom", "cublas", "aten"]),
    launches=times,
    time_us=times,
    launch=st.none() | launches,
)
words = st.lists(st.text(), max_size=2).map(tuple)
tried = st.lists(st.builds(TriedConfiguration, words, times), max_size=2).map(tuple)
autotunings = st.builds(Autotuning, st.text(), st.text(), words, tried, counts)
profiles = st.builds(
    Profile,
    st.lists(kernels).map(tuple),
    times,
    st.floats(0, 1),
    st.lists(autotunings, max_size=2).map(tuple),
)
rooflines = st.builds(Roofline, times, bounds, times, times, times)
shares = st.lists(st.floats(0, 1)).map(tuple)
descriptors = st.builds(
    Descriptor,
    own=shares,
    library=shares,
    launches=times,
    grid=sizes,
    block=sizes,
    bytes_per_s=times,
    instructions=st.lists(st.text()).map(tuple),
    form=st.text(),
    code=st.text(),
)
workloads = st.builds(
    WorkloadTiming, st.text(), timings | estimates, roofline=st.none() | rooflines
)
uses = st.builds(Use, st.text(), st.sampled_from(OUTCOMES), st.text())
measured_or_not = st.fixed_dictionaries(
    {
        "precision": st.sampled_from(["fp32", "tf32", "half"]),
        "error": st.floats(0, 1),
        "absolute_error": st.none() | st.floats(0, 1),
        "cost": costs,
        "detail": st.text(),
        "labels": st.lists(st.text()).map(tuple),
        "profile": st.none() | profiles,
        "roofline": st.none() | rooflines,
        "descriptor": st.none() | descriptors,
        "workloads": st.lists(workloads, max_size=2).map(tuple),
        "uses": st.lists(uses, max_size=2).map(tuple),
    }
)
published = st.builds(PublishedVerdict, st.text(), st.none() | times, st.none() | times)
measured = st.builds(
    lambda parts, t, o: Passed(timing=t, taken_over=o, **parts),
    measured_or_not,
    timings,
    taken_over,
)
estimated = st.builds(lambda parts, t: Passed(timing=t, **parts), measured_or_not, estimates)
passed = measured | estimated
FAILURES = [
    "compile_error",
    "runtime_error",
    "timeout",
    "out_of_memory",
    "wrong_output",
    "rejected",
    "infra_error",
]
anything = st.floats(allow_nan=False)
mismatches = st.builds(
    Mismatch,
    output=st.text(),
    inputs=st.text(),
    share=st.floats(0, 1),
    first_index=st.lists(counts).map(tuple),
    got=anything,
    expected=anything,
    nans=counts,
    pattern=st.text(),
)
faults = st.builds(Fault, st.text(), st.text(), counts, st.text(), st.text())
failed = st.builds(
    Failed,
    status=st.sampled_from(FAILURES),
    reason=st.text(),
    detail=st.text(),
    error=st.none() | st.floats(0, allow_nan=False),
    cost=costs,
    feedback=st.none() | faults | mismatches,
    absolute_error=st.none() | st.floats(0, allow_nan=False),
    loaded=st.booleans(),
    published=st.none() | published,
    taken_over=taken_over,
)

KEYS = {
    "status",
    "precision",
    "error",
    "absolute_error",
    "time_us",
    "time_ci_us",
    "baselines_us",
    "speedup",
    "speedup_ci",
    "claim",
    "too_noisy",
    "speedup_eager",
    "speedup_compile",
    "strongest",
    "samples",
    "waited",
    "allowance",
    "parent",
    "conditions",
    "estimate",
    "labels",
    "profile",
    "roofline",
    "descriptor",
    "workloads",
    "uses",
    "reason",
    "loaded",
    "published",
    "taken_over",
    "fault",
    "mismatch",
    "detail",
    "cost",
}
NEWER_KEYS = (
    "absolute_error",
    "allowance",
    "parent",
    "conditions",
    "estimate",
    "labels",
    "profile",
    "roofline",
    "descriptor",
    "workloads",
    "uses",
    "loaded",
    "published",
    "fault",
    "mismatch",
)


@given(evaluation=passed | failed)
def test_json_and_back_is_the_same(evaluation):
    text = json.dumps(evaluation_to_json(evaluation), allow_nan=False)
    assert evaluation_from_json(json.loads(text)) == evaluation


def test_a_nan_that_was_got_survives():
    found = Mismatch("output", "own-0", 0.5, (3, 1), float("nan"), float("-inf"), 7)
    text = json.dumps(
        evaluation_to_json(Failed("wrong_output", "no", feedback=found)), allow_nan=False
    )
    back = evaluation_from_json(json.loads(text)).feedback
    assert back.got != back.got
    assert back.expected == float("-inf")


@given(evaluation=measured | failed)
def test_what_an_older_release_wrote_is_read(evaluation):
    data = evaluation_to_json(evaluation)
    for key in NEWER_KEYS:
        del data[key]
    old = evaluation_from_json(json.loads(json.dumps(data)))
    assert (old.status, old.error, old.cost) == (
        evaluation.status,
        evaluation.error,
        evaluation.cost,
    )
    if isinstance(evaluation, Passed):
        timing = replace(evaluation.timing, parent=None, conditions=None, allowance=(1.0, 1.0))
        assert timing.noise_ci == timing.speedup_ci
        assert (old.timing, old.labels, old.profile) == (timing, (), None)
        assert old.uses == ()


@given(evaluation=measured, profile=profiles)
def test_a_profile_of_an_older_release_has_no_autotunings(evaluation, profile):
    data = evaluation_to_json(replace(evaluation, profile=profile))
    del data["profile"]["autotunings"]
    assert evaluation_from_json(data).profile == replace(profile, autotunings=())


@given(evaluation=passed | failed)
def test_every_key_is_always_there(evaluation):
    assert evaluation_to_json(evaluation).keys() == KEYS


@given(evaluation=failed)
def test_a_failure_measured_nothing(evaluation):
    data = evaluation_to_json(evaluation)
    said = {"status", "error", "absolute_error", "reason", "fault", "mismatch", "detail", "cost"}
    for key in KEYS - said - {"loaded", "published", "taken_over"}:
        assert not data[key]


@given(evaluation=estimated)
def test_an_estimate_is_no_measurement(evaluation):
    data = evaluation_to_json(evaluation)
    assert data["estimate"]["time_us"] == evaluation.timing.time_us
    for key in ("time_us", "time_ci_us", "baselines_us", "speedup", "speedup_ci", "samples"):
        assert data[key] is None


@given(evaluation=measured)
def test_a_baseline_that_was_not_measured_is_null(evaluation):
    shown = evaluation_to_json(evaluation)["baselines_us"]
    assert shown.keys() == {"eager", "compile"} | evaluation.timing.baselines_us.keys()
    assert (shown["compile"] is None) == ("compile" not in evaluation.timing.baselines_us)


@given(evaluation=measured)
def test_the_strongest_baseline_is_named(evaluation):
    data = evaluation_to_json(evaluation)
    assert data["strongest"] == evaluation.timing.strongest
    times_us = [t for t in data["baselines_us"].values() if t is not None]
    unnamed = evaluation_from_json(data | {"strongest": None})
    assert data["baselines_us"][unnamed.timing.strongest] == min(times_us)


@given(first=measured, second=measured)
def test_over_eager_they_rank_by_what_was_measured(first, second):
    by_rank = rank(first, "eager") < rank(second, "eager")
    assert by_rank == (first.timing.speedup_eager < second.timing.speedup_eager)


@given(first=measured, second=measured)
def test_right_candidates_rank_by_the_least_that_their_measurement_shows(first, second):
    assert (rank(first) < rank(second)) == (first.timing.at_least < second.timing.at_least)


@pytest.mark.parametrize(
    ("interval", "waited", "claim", "too_noisy"),
    [
        ((1.31, 1.34), 0.0, 1.32, False),
        ((0.99, 1.4), 0.0, 0.99, True),
        ((1.006, 10.2), 0.0, 1.006, False),
        ((0.0, 0.0), 0.0, 1.32, False),
        ((1.2, 1.4), 0.1, 1.0, True),
        ((0.6, 0.9), 0.1, 0.6, False),
        ((0.98, 1.02), 0.1, 0.98, True),
        ((0.98, 1.02), 0.0, 1.32, False),
    ],
)
def test_a_noisy_measurement_claims_the_lower_end(interval, waited, claim, too_noisy):
    timing = Timing(1.0, (1.0, 1.0), {"eager": 1.0}, 1.32, interval, 1.0, 9, waited=waited)
    assert (timing.claim, timing.is_too_noisy) == (claim, too_noisy)


def timed(noise, allowance=(1.0, 1.0), **changes):
    """Return a timing of 1.6x whose noise has this interval, and the interval of claims more."""
    ends = noise[0] * allowance[0], noise[1] * allowance[1]
    timing = Timing(5.0, (5.0, 5.0), {"eager": 8.0}, 1.6, ends, 1.6, 9, allowance=allowance)
    return replace(timing, **changes)


@pytest.mark.parametrize(
    ("noise", "allowance", "claim", "verdict"),
    [
        ((1.58, 1.62), (1.0, 1.0), 1.6, "proven"),
        ((1.58, 1.62), (0.9, 1.05), 1.44, "proven"),
        ((1.58, 1.62), (0.5, 1.1), 0.8, "unproven"),
        ((1.3, 1.9), (0.5, 1.1), 0.65, "too noisy"),
        ((2.6, 3.4), (0.5, 1.1), 1.3, "noisy"),
    ],
)
def test_what_a_quiet_measurement_does_not_prove_is_no_noise(noise, allowance, claim, verdict):
    timing = timed(noise, allowance)
    assert timing.noise_ci == pytest.approx(noise)
    assert timing.claim == pytest.approx(claim)
    assert timing.is_unproven == (verdict == "unproven")
    assert timing.is_noisy == ("noisy" in verdict)
    assert timing.is_too_noisy == (verdict == "too noisy")
    assert timing.at_least == pytest.approx(noise[0] if timing.is_noisy else 1.6)


def test_what_is_not_proven_does_not_change_the_rank():
    fast, slow = timed((2.4, 2.6), (0.5, 1.1), speedup=2.5), timed((2.2, 2.3), speedup=2.25)
    assert fast.claim < slow.claim
    assert rank(Passed("fp32", 0.0, fast)) > rank(Passed("fp32", 0.0, slow))


def test_a_gain_that_was_measured_under_load_is_no_claim_and_still_ranks():
    timing = Timing(1.0, (1.0, 1.0), {"eager": 1.0}, 1.32, (1.2, 1.4), 1.0, 9, waited=0.1)
    loaded = Passed("fp32", 0.0, timing)
    assert evaluation_to_json(loaded)["claim"] is None
    assert timing.at_least == 1.2
    assert rank(loaded) > rank(replace(loaded, timing=replace(timing, speedup_ci=(1.1, 1.4))))


@given(guess=estimated, result=measured)
def test_an_estimate_however_good_ranks_below_any_measurement(guess, result):
    assert rank(guess) < rank(result)


@given(first=estimated, second=estimated)
def test_estimated_candidates_rank_by_what_was_estimated(first, second):
    def key(passed):
        return (passed.timing.partial, 0.0 if passed.timing.partial else passed.timing.time_us)

    assert (rank(first) > rank(second)) == (key(first) < key(second))


@given(right=passed, other=failed)
def test_a_right_candidate_ranks_above_any_that_failed(right, other):
    assert rank(right) > rank(other)


def test_one_that_ran_ranks_above_one_that_did_not():
    ran = {"runtime_error", "timeout", "out_of_memory", "wrong_output"}
    for status in FAILURES:
        compiled, correct, *_ = rank(Failed(status, "no"))
        assert compiled == (status in ran)
        assert not correct
