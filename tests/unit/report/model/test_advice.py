"""The advice beside the result for a model whose kernels help in one way to run it only."""

import pytest

from adaexplore.core.replacement import CallOutcome, ModelOutcome, Ratio, Replacement
from adaexplore.report.model.tables import advice, outcome_table

BEFORE = {"eager": 9744.0, "cuda graph": 9355.0, "compile": 16693.0}


def outcome(way, after_us, reason=""):
    call = CallOutcome("images", BEFORE, 7850.0, way, 1e-2, 1e-2, after_us=after_us)
    kept = Replacement("ViTLayer", 24, Ratio(1.22, 1.21, 1.23), reason)
    return ModelOutcome(Ratio(1.22, 1.21, 1.23), (call,), (kept,))


def test_a_model_that_is_slower_in_eager_mode_says_how_to_run_it():
    [line] = advice(outcome("cuda graph", {"eager": 21983.0, "cuda graph": 7583.0}))
    assert line == (
        'images: run it in a CUDA graph (`captured = result.capture("images")`); in eager mode it '
        "takes 22.0 ms with the kernels and 9.74 ms without"
    )


@pytest.mark.parametrize("way", ["cuda graph", "compile", "reduce-overhead", "max-autotune"])
def test_every_way_has_its_advice(way):
    assert len(advice(outcome(way, {"eager": 21983.0, way: 7583.0}))) == 1


@pytest.mark.parametrize(
    "found",
    [
        outcome("cuda graph", {"eager": 9000.0, "cuda graph": 7583.0}),
        outcome("eager", {"eager": 9900.0}),
        outcome("cuda graph", {}),
        outcome("cuda graph", {"eager": 21983.0}, reason="the model is not clearly faster with it"),
    ],
    ids=["faster in eager mode", "best in eager mode", "of an older run", "nothing kept"],
)
def test_there_is_no_advice_without_need(found):
    assert advice(found) == []


def test_the_table_has_the_advice():
    found = outcome("cuda graph", {"eager": 21983.0, "cuda graph": 7583.0})
    assert [str(line) for line in advice(found)] == [
        str(part) for part in outcome_table(found).renderables if "run it" in str(part)
    ]
