"""The folder of a whole model's run, and the ranking that it begins with."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from adaexplore.core.config import Config
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Precision
from adaexplore.model.calls import ModelCall, calls_of
from adaexplore.model.rank import CaptureOptions, RankedModel, precision_of, rank_model
from adaexplore.report.model.html import render_ranking
from adaexplore.run.explore import run_path
from adaexplore.store import require_free

MODULES = "modules"
PAGE = "index.html"
_OF_THE_MODEL = {
    "device": "move the model instead: model.to(device)",
    "mode": "the model runs in eval mode",
    "target": "the model runs on its own device",
}


def rank_in_folder(model: nn.Module, inputs: Any, config: Config) -> tuple[Path, RankedModel]:
    """Rank the modules of a model; return a new folder with the page and the problems.

    Raises `BadInputError` for a model, inputs or options that cannot be used.
    """
    for name, remedy in _OF_THE_MODEL.items():
        if name in config.model_fields_set:
            raise BadInputError(f"{name} is the model's own; {remedy}")
    calls = calls_of(inputs)
    path = run_path(type(model).__name__, config)
    require_free(path)
    ranked = ranked_model(model, calls, config, path / MODULES)
    path.mkdir(parents=True, exist_ok=True)
    text = json.dumps(ranked.ranking.to_json(), indent=1)
    (path / "ranking.json").write_text(text + "\n", encoding="utf-8")
    (path / PAGE).write_text(render_ranking(ranked.ranking), encoding="utf-8")
    return path, ranked


def ranked_model(
    model: nn.Module, calls: list[ModelCall], config: Config, folder: Path
) -> RankedModel:
    """Rank a model, in its own precision unless the configuration has another."""
    checks = replace(config.checks, precision=precision_in(model, config))
    options = CaptureOptions(folder, checks, config.language, config.problem_seed)
    return rank_model(model, calls, options)


def precision_in(model: nn.Module, config: Config) -> Precision:
    """Return the precision class of a search for a model."""
    given = "precision" in config.model_fields_set
    return config.precision if given else precision_of(model)
