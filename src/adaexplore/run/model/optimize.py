"""A whole model made faster: ranked, searched as one campaign, and given the winners."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from adaexplore.core.errors import BadInputError
from adaexplore.core.ranking import ModelRanking, RankedGroup
from adaexplore.core.replacement import ModelOutcome
from adaexplore.core.settings.config import CAMPAIGN_DEFAULTS, DEFAULT_STEPS, Config
from adaexplore.core.settings.configure import make_config, option_name
from adaexplore.model.calls import ModelCall, calls_of
from adaexplore.model.graphs import CapturedCall, capture_call
from adaexplore.model.placements import Placements
from adaexplore.model.put_back import GroupWinner, put_back
from adaexplore.model.rank import RankedModel
from adaexplore.model.ways import scope_of
from adaexplore.problems.captured import CAPTURED, in_folder
from adaexplore.report.model.html import render_model
from adaexplore.report.model.tables import model_text
from adaexplore.run.campaign.file import CampaignEntry, CampaignPlan, of_entry
from adaexplore.run.campaign.job import ProgressRow
from adaexplore.run.campaign.run import CampaignRun, begin_order, change_campaign
from adaexplore.run.model.ranked import MODULES, PAGE, RANKING, rank_again, rank_in_folder
from adaexplore.run.outcome.deliver import claimed_winner
from adaexplore.store import is_run, open_run, read_run
from adaexplore.store.campaign import is_campaign, read_manifest

SEARCH = "search"
"""The folder of the campaign, in that of a model's run."""
_MAY_CHANGE = frozenset({"steps", "budget", "parallel", "allocation"})
_MOST_SEARCHED = 4
_LEAST_SAVED = 0.01


@dataclass(frozen=True, slots=True)
class OptimizedModel:
    """A model with the winners in it that make it faster, and the measurements.

    `outcome` is None while no search has found a correct kernel.
    """

    model: nn.Module
    path: Path
    ranking: ModelRanking
    outcome: ModelOutcome | None
    placements: Placements
    calls: tuple[ModelCall, ...] = ()

    def capture(self, name: str = "") -> CapturedCall:
        """Capture a call in a CUDA graph, as it was timed; of several calls, the one of a name.

        The result replays the graph when called. `call` has its arguments, to copy new ones into,
        and `outputs` what it writes.

        Raises `BadInputError` for a name that no call has, and without a GPU.
        """
        calls = {call.name: call for call in self.calls if name in ("", call.name)}
        if len(calls) != 1:
            names = ", ".join(call.name for call in self.calls)
            raise BadInputError(f"capture: give the name of a call ({names}), not {name!r}")
        if self.ranking.device == "cpu":
            raise BadInputError("capture: CUDA graphs need a GPU, and the model is on the CPU")
        [call] = calls.values()
        device = self.ranking.device
        with torch.no_grad(), scope_of(self.model, self.ranking.precision, device):
            return capture_call(lambda given: self.model(*given.args, **given.kwargs), call, device)

    @property
    def speedup(self) -> float:
        """The speedup of the model over the strongest way to run the original; 1 without one."""
        return self.outcome.speedup.median if self.outcome else 1.0

    @property
    def page(self) -> Path:
        """The page with the ranking and the result."""
        return self.path / PAGE

    def undo(self) -> None:
        """Take every winner out: the model is as it was."""
        self.placements.put(())

    def __str__(self) -> str:
        return model_text(self.ranking, self.outcome)


def optimize_model(
    model: nn.Module, inputs: Any, *, config: Config | None = None, **options: Any
) -> OptimizedModel:
    """Make a model faster in place: search kernels for its slowest modules, keep those that help.

    `inputs` is a list of calls, or a dictionary of names and calls; a call is a tuple of arguments
    or a dictionary of named arguments. `options` are fields of `Config`, on top of `config`; a
    `run` that exists goes on. The model must be in eval mode, and stays as it was but for the
    forwards of the modules that were replaced; `undo()` of the result gives those back.

    Raises `BadInputError`, in one line, for a model, inputs or options that cannot be used.
    """
    run = ModelRun.begin(model, inputs, make_config(options, config))
    search = run.search_folder("adaexplore.optimize_model(...)")
    CampaignRun(search, lambda _: ProgressRow()).run()
    return run.finish()


@dataclass(frozen=True, slots=True)
class ModelRun:
    """The run of a model in a folder, ranked and perhaps searched."""

    model: nn.Module
    calls: list[ModelCall]
    config: Config
    path: Path
    ranked: RankedModel

    @staticmethod
    def begin(model: nn.Module, inputs: Any, config: Config) -> ModelRun:
        """Rank a model in a new folder, or go on with the run in `config.run`."""
        if config.with_backward:
            raise BadInputError(
                "with_backward: a whole model is compared and timed forward alone; search its "
                "modules one by one with it (adaexplore.optimize)"
            )
        path = Path(config.run or "")
        begun = bool(config.run) and (path / RANKING).is_file()
        if begun and is_campaign(path / SEARCH):
            _refuse_changes(config, path / SEARCH)
        path, ranked = (rank_again if begun else rank_in_folder)(model, inputs, config)
        return ModelRun(model, calls_of(inputs), config, path, ranked)

    def search_folder(self, command: str) -> Path:
        """Return the folder of the campaign over the best groups, made unless it is there.

        Raises `BadInputError` where no group can be searched.
        """
        folder = self.path / SEARCH
        if is_campaign(folder):
            change_campaign(folder, _changes(self.config))
            for group in self._searched():
                _find_files(folder / group.name, self.path / MODULES / group.name)
            return folder
        groups = self._searched()
        if not groups:
            raise BadInputError(
                f"{self.ranking.model}: no module can be searched; {self.path / PAGE} says why"
            )
        config = self._campaign_config(folder)
        entries = tuple(self._entry(group, config) for group in groups)
        return begin_order(CampaignPlan(config, entries), command, "model")

    def finish(self, listen: Callable[[str], None] = lambda _: None) -> OptimizedModel:
        """Put the winners of the search into the model, and write the page.

        `listen` is told what is done next: compilations of the model may take minutes.
        """
        winners = {}
        for group in self._searched():
            if source := self._winner(self.path / SEARCH / group.name):
                winners[group.name] = GroupWinner(self.ranked.problems[group.name], source)
        outcome, placements = None, Placements(self.model)
        if winners:
            folder = self.path.resolve() / "kernels"
            precision = self.ranking.precision
            outcome, placements = put_back(
                self.model,
                self.calls,
                winners,
                precision=precision,
                folder=folder,
                listen=listen,
            )
            text = json.dumps(outcome.to_json(), indent=1)
            (self.path / "outcome.json").write_text(text + "\n", encoding="utf-8")
        page = render_model(self.ranking, outcome)
        (self.path / PAGE).write_text(page, encoding="utf-8")
        return OptimizedModel(
            self.model, self.path, self.ranking, outcome, placements, tuple(self.calls)
        )

    @property
    def ranking(self) -> ModelRanking:
        """The ranking."""
        return self.ranked.ranking

    def _searched(self) -> list[RankedGroup]:
        worth = [group for group in self.ranking.chosen if group.saves >= _LEAST_SAVED]
        return worth[:_MOST_SEARCHED]

    def _campaign_config(self, folder: Path) -> Config:
        own: dict[str, Any] = {
            "run": str(folder),
            "device": self.ranking.device,
            "precision": self.ranking.precision,
        }
        return make_config(own, self.config.over(Config.model_validate(CAMPAIGN_DEFAULTS)))

    def _entry(self, group: RankedGroup, config: Config) -> CampaignEntry:
        file = Path("..") / MODULES / group.name / CAPTURED
        if config.steps is None and config.budget is None:
            config = config.model_copy(update={"steps": DEFAULT_STEPS})
        return CampaignEntry(group.name, str(file), of_entry(config))

    def _winner(self, run: Path) -> str:
        """Return the winner's source, empty where the run claims none."""
        if not is_run(run):
            return ""
        with read_run(run) as directory:
            try:
                return claimed_winner(directory.store, run).source
            except BadInputError:
                return ""


def _find_files(run: Path, module: Path) -> None:
    """Let a search go on with its problem's files where they are now, in a run that was moved."""
    if not is_run(run):
        return
    with read_run(run) as directory:
        begun = directory.store.run().problem
    here = in_folder(begun, module)
    if here != begun:
        with open_run(run) as directory:
            directory.store.move(here)


def _refuse_changes(config: Config, search: Path) -> None:
    """Raise `BadInputError` for an option that is not the search's, and may not change."""
    begun = CampaignPlan.from_json(read_manifest(search)["order"]).config
    for name in sorted(config.model_fields_set - _MAY_CHANGE - {"run"}):
        if getattr(config, name) != getattr(begun, name):
            raise BadInputError(
                f"{option_name(name)}: {search.parent} goes on as it began, with "
                f"{getattr(begun, name)!r}; it may change "
                f"{', '.join(map(option_name, sorted(_MAY_CHANGE)))}; begin another run for others"
            )


def _changes(config: Config) -> Config:
    """Return the fields of a campaign that goes on which were given."""
    given = _MAY_CHANGE & config.model_fields_set
    return make_config({name: getattr(config, name) for name in given})
