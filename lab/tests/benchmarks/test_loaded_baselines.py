"""Times of baselines alone and beside searches, as one table."""

import loaded_baselines

from adaexplore.core import ReferenceFacts


def prepared(at_work, **baselines_us):
    return ReferenceFacts(baselines_us=baselines_us, notes=("careful",)), at_work


def test_the_ratio_is_that_of_the_medians_and_of_what_was_timed_every_time():
    alone = [prepared(0.1, eager=100.0, compile=50.0), prepared(0.3, eager=104.0)]
    beside = [prepared(0.9, eager=300.0), prepared(0.8, eager=110.0), prepared(1.0, eager=102.0)]
    found = loaded_baselines.summary(alone, beside)
    assert found == {
        "baselines": {
            "eager": {
                "alone_us": [100.0, 104.0],
                "beside_us": [300.0, 110.0, 102.0],
                "ratio": 1.0784,
            }
        },
        "host_at_work": {"alone": [0.1, 0.3], "beside": [0.9, 0.8, 1.0]},
        "notes": ["careful"],
    }
    assert "ratio 1.078" in next(loaded_baselines.lines(found))


def test_a_process_at_work_shows():
    at_work = loaded_baselines._share_at_work()
    for _ in range(3_000_000):
        pass
    assert 0.0 < at_work() <= 1.0
