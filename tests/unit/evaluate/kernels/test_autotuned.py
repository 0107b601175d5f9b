"""Searches of Triton's own autotuner, whose times and launches are given by the test."""

import importlib

import pytest

from adaexplore.core import codec
from adaexplore.core.verdict.evaluation import Autotuning, TriedConfiguration
from adaexplore.evaluate.kernels.autotuned import read_autotunings
from adaexplore.evaluate.kernels.launches import watched_launches
from adaexplore.evaluate.kernels.profile import read_profile
from adaexplore.evaluate.wire.kernel_messages import (
    Profiled,
    ProfiledKernel,
    TunedConfiguration,
    TunedKernel,
)

CANDIDATE = """
import triton
from triton import Config

TIMES_MS = iter([[0.4, 0.3, 0.5], [float("inf")] * 3, [0.25, 0.2, 0.3], 0.8, 0.9, 0.7])

@triton.autotune(
    [Config({"BLOCK": b}, num_warps=w, num_stages=2) for b, w in ((64, 4), (512, 8), (128, 4))],
    key=["n"],
    do_bench=lambda call, quantiles: next(TIMES_MS),
)
@triton.jit
def scale(x, n, BLOCK):
    pass
"""


@pytest.fixture
def kernel(monkeypatch, tmp_path):
    """An autotuned kernel whose launches do nothing."""
    jit = pytest.importorskip("triton.runtime.jit")
    monkeypatch.setattr(jit.JITFunction, "run", lambda *_, **__: None)
    (tmp_path / "tuned_candidate.py").write_text(CANDIDATE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(importlib.sys.modules, "tuned_candidate", raising=False)
    return importlib.import_module("tuned_candidate").scale


def launch(kernel, n, folder, **options):
    with watched_launches(folder, **options) as launches:
        kernel[(1,)](None, n)
    return launches


FOR_64 = Autotuning(
    "scale",
    "n=64",
    ("BLOCK", "num_warps", "num_stages"),
    (
        TriedConfiguration(("128", "4", "2"), 250.0),
        TriedConfiguration(("64", "4", "2"), 400.0),
    ),
    tried=3,
    refused=1,
)


def test_a_search_is_told_with_times_in_microseconds_the_fastest_first(kernel, tmp_path):
    assert read_autotunings(launch(kernel, 64, tmp_path).tuned) == (FOR_64,)


def test_each_search_is_told_once_with_its_arguments(kernel, tmp_path):
    launches = launch(kernel, 64, tmp_path)
    launch(kernel, 64, tmp_path, into=launches)  # no new search: the choice is known
    launch(kernel, 32, tmp_path, into=launches)
    assert [len(each.configurations) for each in launches.tuned] == [2, 3]
    first, second = read_autotunings(launches.tuned)
    assert (first, second.arguments, second.refused) == (FOR_64, "n=32", 0)
    assert [each.time_us for each in second.configurations] == [700.0, 800.0, 900.0]


def test_the_autotuner_is_as_before_afterwards(kernel, tmp_path):
    before = type(kernel).run
    launches = launch(kernel, 64, tmp_path)
    assert type(kernel).run is before
    kernel[(1,)](None, 32)
    assert len(launches.tuned) == 1


@pytest.mark.parametrize("timings", [7, {"no configuration": [1.0]}, {1: "long"}, {1: []}])
def test_a_changed_form_of_timings_is_no_failure_of_the_call(
    kernel, tmp_path, monkeypatch, timings
):
    tuner, search = type(kernel), type(kernel).run

    def changed(self, *args, **kwargs):
        search(self, *args, **kwargs)
        self.configs_timings = timings

    monkeypatch.setattr(tuner, "run", changed)
    assert launch(kernel, 64, tmp_path).tuned == []


def told(*times_us, name="k", arguments="", tried=0, **parameters):
    configurations = tuple(TunedConfiguration(parameters, time_us) for time_us in times_us)
    return TunedKernel(name, arguments, configurations, tried)


class TestReading:
    @pytest.mark.parametrize("nonsense", [float("nan"), float("inf"), 0.0, -1.0])
    def test_times_that_are_none_are_left_out(self, nonsense):
        assert read_autotunings([told(nonsense)]) == ()
        [found] = read_autotunings([told(nonsense, 5.0)])
        assert [each.time_us for each in found.configurations] == [5.0]

    def test_numbers_of_kernels_and_configurations_are_limited(self):
        found = read_autotunings(
            [told(*range(30, 0, -1), name=f"k{i}", tried=-9) for i in range(9)]
        )
        assert [each.kernel for each in found] == ["k5", "k6", "k7", "k8"]
        assert [each.time_us for each in found[0].configurations] == list(range(1, 13))
        assert (found[0].tried, found[0].refused) == (30, 0)

    def test_names_and_values_are_short_and_of_one_line(self):
        long = "x\n```\n" * 100
        [found] = read_autotunings([told(1.0, name=long, arguments=long, **{long: long})])
        texts = [found.kernel, found.arguments, *found.parameters, *found.configurations[0].values]
        assert all("\n" not in text and len(text) <= 80 for text in texts)

    def test_a_parameter_that_one_configuration_lacks_has_no_value(self):
        kernel = TunedKernel(
            "k",
            "",
            (TunedConfiguration({"A": "1"}, 2.0), TunedConfiguration({"B": "3"}, 1.0)),
            2,
        )
        [found] = read_autotunings([kernel])
        assert found.parameters == ("B", "A")
        assert [each.values for each in found.configurations] == [("3", ""), ("", "1")]

    def test_a_profile_from_the_wire_has_them(self):
        sent = Profiled(1, (ProfiledKernel("k", 1, 9.0, None),), (), (told(5.0, BLOCK="64"),))
        found = read_profile(codec.read(Profiled, codec.write(sent)), "", "triton")
        assert found.profile.autotunings == read_autotunings(sent.tuned) != ()
