"""Times of baselines as one table."""

import baselines

from adaexplore.evaluate import BaselineTrial


def test_times_are_milliseconds_and_the_strongest_is_named():
    trials = [
        BaselineTrial("eager", {"small": 1000.0, "large": 4000.0}),
        BaselineTrial("compile", {"small": 500.0, "large": 500.0}),
        BaselineTrial("eager-cuda-graph", why="it cannot be captured"),
    ]
    assert baselines.summary("mlp", trials) == {
        "problem": "mlp",
        "strongest": "compile",
        "ms": {"eager": 2.0, "compile": 0.5},
        "left_out": {"eager-cuda-graph": "it cannot be captured"},
    }
