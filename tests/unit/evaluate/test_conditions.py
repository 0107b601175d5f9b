import pytest

from adaexplore.evaluate.conditions import gauge_for, worst
from adaexplore.evaluation import Conditions


def test_the_processor_s_load_is_told():
    reading = gauge_for("cpu").read()
    assert reading.load >= 0.0
    assert reading.throttled == ()


@pytest.mark.gpu
def test_a_gpu_s_clock_and_temperature_are_told():
    reading = gauge_for("cuda:0").read()
    assert 100 < reading.clock_mhz < 5000
    assert 0 < reading.temperature_c < 120


def test_the_worst_of_several():
    readings = [
        Conditions(0.5, 1980, 40),
        Conditions(0.7, 1500, 55, ("power cap",)),
        Conditions(0.1, None, None, ("power cap", "power brake")),
    ]
    assert worst(readings) == Conditions(0.7, 1500, 55, ("power cap", "power brake"))


def test_nothing_told_stays_nothing():
    assert worst([Conditions(1.0)]) == Conditions(1.0)
