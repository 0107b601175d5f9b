"""The folder of a whole model's run, and the ranking that it begins with."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from adaexplore.core.errors import BadInputError, BadProblemError
from adaexplore.core.problem import Problem
from adaexplore.core.ranking import ModelRanking
from adaexplore.core.settings.config import Config
from adaexplore.model.calls import calls_of
from adaexplore.model.program import program_of
from adaexplore.model.rank import (
    CaptureOptions,
    RankedModel,
    precision_of,
    rank_model,
    recapture,
)
from adaexplore.problems.captured import CAPTURED
from adaexplore.report.model.html import render_model
from adaexplore.run.explore import run_path
from adaexplore.store import require_free

MODULES = "modules"
PAGE = "index.html"
RANKING = "ranking.json"
_OF_THE_MODEL = {
    "device": "move the model instead: model.to(device)",
    "mode": "the model runs in eval mode",
    "target": "the model runs on its own device",
}


def rank_in_folder(model: nn.Module, inputs: Any, config: Config) -> tuple[Path, RankedModel]:
    """Rank the modules of a model; return a new folder with the page and the problems.

    Raises `BadInputError` for a model, inputs or options that cannot be used.
    """
    _refuse_options(config)
    calls = calls_of(inputs)
    path = run_path(type(model).__name__, config)
    require_free(path)
    ranked = rank_model(model, calls, _options(model, config, path / MODULES))
    path.mkdir(parents=True, exist_ok=True)
    text = json.dumps(ranked.ranking.to_json(), indent=1)
    (path / RANKING).write_text(text + "\n", encoding="utf-8")
    (path / PAGE).write_text(render_model(ranked.ranking), encoding="utf-8")
    return path, ranked


def rank_again(model: nn.Module, inputs: Any, config: Config) -> tuple[Path, RankedModel]:
    """Return the ranking in the folder `config.run`, its groups captured again from the model.

    Tensors of the problems that are missing, as in a run that was moved without them, are put back.

    Raises `BadInputError` where the model is not the one that the run was begun with.
    """
    _refuse_options(config)
    path = Path(config.run)
    data = json.loads((path / RANKING).read_text(encoding="utf-8"))
    ranking = ModelRanking.from_json(data)
    if "precision" in config.model_fields_set and config.precision != ranking.precision:
        raise BadInputError(f"--precision: {path} was begun with {ranking.precision}")
    options = _options(model, config, path / "again")
    options = replace(options, checks=replace(options.checks, precision=ranking.precision))
    try:
        ranked = recapture(model, calls_of(inputs), ranking, options)
    except BadProblemError as error:
        raise BadInputError(_another(path, str(error))) from error
    for name, problem in ranked.problems.items():
        before = (path / MODULES / name / "problem.py").read_text(encoding="utf-8")
        if program_of(before) != program_of(problem.captured.problem.source):
            raise BadInputError(_another(path, f"{name} differs"))
        _put_back_missing(problem.captured.problem, path / MODULES / name)
    return path, ranked


def _another(path: Path, difference: str) -> str:
    """Return the complaint about a model that is not the one of a run."""
    return f"{path}: was begun with another model: {difference}; name another --run for this one"


def _put_back_missing(again: Problem, folder: Path) -> None:
    """Copy the tensors of a problem that was captured again, where the folder lacks them."""
    begun = Problem.from_json(json.loads((folder / CAPTURED).read_text(encoding="utf-8")))
    digests = {Path(file).name: digest for file, digest in _tensors(begun).items()}
    for file, digest in _tensors(again).items():
        kept = folder / Path(file).name
        if kept.exists():
            continue
        if digest != digests.get(kept.name):
            raise BadInputError(
                f"{kept} is missing, and the script makes other tensors here; copy it from where "
                "the run was begun"
            )
        draft = kept.with_suffix(".new")
        shutil.copyfile(file, draft)
        draft.replace(kept)


def _tensors(problem: Problem) -> dict[str, str]:
    """Return the files with a captured problem's tensors, and their digests."""
    found = {each.file: each.digest for each in problem.workloads}
    return found | ({problem.weights: problem.weights_digest} if problem.weights else {})


def _options(model: nn.Module, config: Config, folder: Path) -> CaptureOptions:
    """Return the options of a capture: in the model's own precision unless another is given."""
    given = "precision" in config.model_fields_set
    precision = config.precision if given else precision_of(model)
    checks = replace(config.checks, precision=precision)
    return CaptureOptions(folder, checks, config.language, config.problem_seed)


def _refuse_options(config: Config) -> None:
    for name, remedy in _OF_THE_MODEL.items():
        if name in config.model_fields_set:
            raise BadInputError(f"{name} is the model's own; {remedy}")
