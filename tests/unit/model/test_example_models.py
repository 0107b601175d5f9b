"""The five example models run on the CPU at their small size, and are made alike each time."""

import sys
from pathlib import Path

import pytest
import torch

from adaexplore.model.calls import calls_of
from adaexplore.model.kept import refuse_unfit
from adaexplore.model.unseen import tensors_in
from adaexplore.run.model.script import made_by

MODELS = Path(__file__).parents[3] / "examples/models"
PLACES = ["qwen3.py:make", "vit.py:make", "mamba2.py:make", "convnext.py:make", "whisper.py:make"]


@pytest.mark.parametrize("place", PLACES)
def test_an_example_model_runs(place, monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.setenv("MODEL_SIZE", "small")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("sizes", "adaexplore_model_script"):
        sys.modules.pop(name, None)
    found = []
    for _ in range(2):
        model, inputs = made_by(str(MODELS / place))
        calls = calls_of(inputs)
        assert refuse_unfit(model, calls) == "cpu"
        results = [call.copied().run(model) for call in calls]
        found.append([t for result in results for t in tensors_in(result)])
    assert all(map(torch.equal, *found))
    assert all(t.isfinite().all() for t in found[0])
