"""The judgement of a device's canary by its own history and by its kind."""

from adaexplore.run.cluster.known_times import TOLERANCE, KnownTimes


def slow(times: KnownTimes, device: str, time_us: float, kind: str = "H100") -> bool:
    return time_us > times.note(kind, device, time_us)


def test_the_first_time_of_a_kind_is_believed():
    assert not slow(KnownTimes(), "a", 900.0)


def test_a_device_is_held_against_its_own_best():
    times = KnownTimes()
    assert not slow(times, "a", 100.0)
    assert not slow(times, "a", 100.0 * TOLERANCE)
    assert slow(times, "a", 101.0 * TOLERANCE)
    assert not slow(times, "a", 100.0)


def test_a_device_that_never_was_fast_is_held_against_its_kind():
    times = KnownTimes()
    for name in "abc":
        assert not slow(times, name, 100.0)
    assert slow(times, "d", 150.0)
    assert not slow(times, "e", 150.0, kind="L4")


def test_one_fast_device_does_not_condemn_its_kind():
    times = KnownTimes()
    for name in "abc":
        times.note("H100", name, 100.0)
    times.note("H100", "lucky", 50.0)
    assert not slow(times, "a", 100.0)
