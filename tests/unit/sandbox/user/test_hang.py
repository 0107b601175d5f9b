"""A reference that hangs ends by the time limit, in one line that says where."""

import time
from types import SimpleNamespace

import pytest

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.sandbox.user import hang
from adaexplore.sandbox.user.hang import hung_at, limited

SOURCE = """
import time
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.rand(4)]
"""
FOREVER = "time.sleep(600)\n"


@pytest.mark.parametrize(
    ("before", "place"),
    [
        pytest.param("class Model(nn.Module):", "line 6, in <module>", marks=pytest.mark.slow),
        pytest.param("        super().__init__()", "line 8, in __init__", marks=pytest.mark.slow),
        pytest.param(
            "    return [torch.rand(4)]", "line 14, in get_inputs", marks=pytest.mark.slow
        ),
        ("        return x * 2", "line 11, in forward"),
    ],
)
def test_the_line_where_a_reference_hangs(server, before, place):
    indent = before[: len(before) - len(before.lstrip())]
    source = SOURCE.replace(before, f"{indent}{FOREVER}{before}")
    problem = Problem("mine", source, "cpp", "cpu")
    evaluator = LocalEvaluator(server, problem, timeout_s=2.0, memory_bytes=4 << 30, brief=True)
    started = time.monotonic()
    try:
        with pytest.raises(BadProblemError) as caught:
            evaluator.prepare()
    finally:
        evaluator.close()
    assert time.monotonic() - started < 60.0
    assert str(caught.value).startswith(f"mine.py, {place}: a call of the reference")
    assert "within 2 s" in str(caught.value)
    assert "--set timeout_s" in str(caught.value)


def test_without_a_limit_nothing_ends():
    with limited():
        pass


def test_a_limit_around_many_calls_begins_once_and_again_for_a_call_that_comes_late(monkeypatch):
    told, now = [], [100.0]
    timer = SimpleNamespace(
        dump_traceback_later=lambda seconds, exit: told.append((seconds, exit)),
        cancel_dump_traceback_later=lambda: told.append("ended"),
    )
    monkeypatch.setattr(hang, "faulthandler", timer)
    monkeypatch.setattr(hang, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(hang, "_limit_s", 10.0)
    for _ in range(2):
        with pytest.raises(ValueError, match="no"), limited():
            raise ValueError("no")
    assert told == 2 * [(10.0, True), "ended"]
    told.clear()
    with limited():
        for _ in range(3):
            with limited():
                now[0] += 0.3
        assert told == [(10.0, True)]
        now[0] += 0.2
        with limited():  # a tenth of the limit is over
            assert told == 2 * [(10.0, True)]
        assert told == 2 * [(10.0, True)]
    assert told == [*2 * [(10.0, True)], "ended"]


def test_a_log_that_tells_of_no_hang():
    assert hung_at("Traceback (most recent call last):\nValueError") is None
    assert hung_at("Timeout (0:00:02)!\nThread 0x1:\n") == ""
