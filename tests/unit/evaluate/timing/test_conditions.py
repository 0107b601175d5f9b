import pytest

from adaexplore.core.verdict.evaluation import Conditions
from adaexplore.evaluate.timing.conditions import from_line, gauge_for


def test_the_processor_s_load_is_told():
    gauge = gauge_for("cpu")
    gauge.start()
    reading = gauge.read()
    assert reading.load >= 0.0
    assert reading.throttled == ()


@pytest.mark.gpu
def test_a_gpu_s_clock_and_temperature_are_told():
    gauge = gauge_for("cuda:0")
    gauge.start()
    reading = gauge.read()
    assert 100 < reading.clock_mhz < 5000
    assert 0 < reading.temperature_c < 120


@pytest.mark.parametrize(
    ("line", "conditions"),
    [
        ("1980, 37, 0x0000000000000000", Conditions(0.5, 1980, 37)),
        ("345, 30, 0x0000000000000001", Conditions(0.5, 345, 30)),  # idle: nothing holds it back
        ("1200, 80, 0x0000000000000084", Conditions(0.5, 1200, 80, ("power cap", "power brake"))),
        ("[N/A], 37, 0x0", Conditions(0.5)),
        ("No devices were found", Conditions(0.5)),
        ("", Conditions(0.5)),
    ],
)
def test_what_the_tool_prints(line, conditions):
    assert from_line(line, load=0.5) == conditions
