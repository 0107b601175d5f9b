"""The five example models run on the CPU at their small size, and are made alike each time."""

import sys
from pathlib import Path

import pytest
import torch

from adaexplore.core.problem import Checks
from adaexplore.model.calls import calls_of
from adaexplore.model.kept import refuse_unfit
from adaexplore.model.placements import Placements
from adaexplore.model.rank import CaptureOptions, rank_model
from adaexplore.model.unseen import Original, tensors_in
from adaexplore.package.describe import describe_kernel
from adaexplore.package.imported import import_kernel
from adaexplore.run.model.script import made_by

MODELS = Path(__file__).parents[3] / "examples/models"
PLACES = ["qwen3.py:make", "vit.py:make", "mamba2.py:make", "convnext.py:make", "whisper.py:make"]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Models of a small size, on the CPU."""
    pytest.importorskip("transformers")
    monkeypatch.setenv("MODEL_SIZE", "small")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("sizes", "adaexplore_model_script"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("place", PLACES)
def test_an_example_model_runs(place):
    found = []
    for _ in range(2):
        model, inputs = made_by(str(MODELS / place))
        calls = calls_of(inputs)
        assert refuse_unfit(model, calls) == "cpu"
        results = [call.copied().run(model) for call in calls]
        found.append([t for result in results for t in tensors_in(result)])
    assert all(map(torch.equal, *found))
    assert all(t.isfinite().all() for t in found[0])


@pytest.mark.slow
@pytest.mark.parametrize("place", ["qwen3.py:decode", "vit.py:make", "whisper.py:make"])
def test_an_example_model_is_ranked_and_right_with_a_kernel_in_its_layers(place, tmp_path):
    """The road without the search, which has tests of its own: the captured code is the kernel."""
    model, inputs = made_by(str(MODELS / place))
    calls = calls_of(inputs)
    ranked = rank_model(model, calls, CaptureOptions(tmp_path, Checks("fp32")))
    [layers] = [group for group in ranked.ranking.chosen if group.kind.endswith("Layer")]
    problem = ranked.problems[layers.name].captured.problem
    source = problem.source.replace("class Model(", "class ModelNew(")
    original = Original(model, calls, "fp32", "cpu")
    kernel = import_kernel(describe_kernel(problem, source, "kernel", tmp_path), tmp_path)
    placements = Placements(model)
    placements.add(layers.name, kernel, layers.paths)
    assert placements.count(layers.name) == len(layers.paths) >= 2
    before = kernel.runs()
    with placements.only([layers.name]):
        differences = original.differences(model)
    assert all(one.is_same for one in differences)
    assert all(one.agreeing == one.steps for one in differences)
    assert kernel.runs() > before
    assert kernel.refusals() == {}
    assert not any("forward" in vars(module) for module in model.modules())
