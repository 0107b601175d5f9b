"""The arms of a study, from a TOML file in the style of a campaign's.

Every problem of the campaign is searched by every arm with every seed. An `[[arm]]` table has a
name, and settings that go before those of the file and of the problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.configure import group_of, make_config, option_name
from adaexplore.run.campaign.file import (
    OF_CLIENTS,
    CampaignEntry,
    CampaignPlan,
    anchored,
    as_toml,
    of_entry,
    order_of,
    read_toml,
    refuse_unknown,
    tables_of,
)

_EXAMPLE = '[[arm]] with name = "no-reviser" and reviser = false'
_ARMS_OWN = ("language", "stop_near", "stop_flat", "stop_flat_gain")
_STUDYS_OWN = (*OF_CLIENTS, "steps", "parallel", "memory_update")
_EQUAL = ("allocation", "first_steps")
"""Fields of campaigns that give problems different shares."""
_OWN = ("arm", "problem", "seeds")
_FOLDERS = ("asks", "problems")
_MOST_SEEDS = 1000


@dataclass(frozen=True, slots=True)
class StudyArm:
    """An arm of a study: its name and its own settings, as they stand in the file."""

    name: str
    settings: Mapping[str, Any]


def read_study_file(path: Path, given: Config) -> CampaignPlan:
    """Return the runs of a study: of each problem in turn, every seed with every arm.

    Fields in `given` go before the whole file. All runs of a problem have the same weights and
    inputs. Raises `BadInputError` for a file that cannot be understood, an arm that has a setting
    which a study has once, or two arms that are alike.
    """
    data = read_toml(path)
    folder = path.resolve().parent
    try:
        refuse_unknown(data, "", refused=("run",), also=_OWN)
        arms = _arms(tables_of(data, "arm", _EXAMPLE), folder)
        _refuse_given(given, arms)
        seeds = _seeds(data.pop("seeds", 1))
        _refuse_unequal(data)
        tables = tables_of(data, "problem", '[[problem]] with file = "a.py"')
        order = order_of(data, tables, folder, given, defaults={})
        entries = [
            entry
            for problem in order.entries
            for seed in seeds
            for entry in _of_problem(problem, arms, seed, seeds[0], given)
        ]
        _refuse_alike(entries[: len(arms)])
    except BadInputError as error:
        raise BadInputError(f"{path}: {error}") from None
    config = order.config.model_copy(update={"allocation": "uniform"})
    names = tuple(arm.name for arm in arms)
    return replace(order, config=config, entries=tuple(entries), arms=names)


def _of_problem(
    problem: CampaignEntry, arms: Sequence[StudyArm], seed: int, first_seed: int, given: Config
) -> list[CampaignEntry]:
    """Return the runs of all arms on a problem with one seed."""
    base = problem.config
    inputs_seed = first_seed if base.inputs_seed is None else base.inputs_seed
    fixed = {"seed": seed, "inputs_seed": inputs_seed, "steps": base.steps}
    found = []
    for arm in arms:
        own = make_config(arm.settings, base, spelling=as_toml(f"arm {arm.name}: "))
        config = of_entry(given.over(own)).model_copy(update=fixed)
        name = f"{arm.name}/{problem.name}-seed{seed}"
        found.append(replace(problem, name=name, config=config, arm=arm.name))
    return found


def _arms(tables: Sequence[Mapping[str, Any]], folder: Path) -> list[StudyArm]:
    refused = [name for name in Config.model_fields if not _may_differ(name)]
    arms = []
    for number, table in enumerate(tables):
        name = table.get("name")
        if not isinstance(name, str) or Path(name).name != name or name[:1] in (".", ""):
            raise BadInputError(
                f"arm.{number}.name = {name!r}: an arm has the name of a folder; write {_EXAMPLE}"
            )
        if name in _FOLDERS:
            raise BadInputError(f"arm {name}: the study's folder has another {name}; rename it")
        once = "a study has it once: write it above the arms"
        refuse_unknown(table, f"arm {name}: ", refused=refused, also=("name",), once=once)
        own = {key: value for key, value in table.items() if key != "name"}
        arms.append(StudyArm(name, anchored(own, folder)))
    if not arms:
        raise BadInputError(f"there are no arms; write {_EXAMPLE}")
    for name, count in Counter(arm.name.casefold() for arm in arms).items():
        if count > 1:
            raise BadInputError(f"arm {name}: {count} arms have this name; give each its own")
    return arms


def _may_differ(name: str) -> bool:
    return (group_of(name) in ("model", "search") or name in _ARMS_OWN) and name not in _STUDYS_OWN


def _seeds(value: Any) -> list[int]:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_SEEDS:
        return list(range(value))
    numbers = isinstance(value, list) and value and all(type(one) is int for one in value)
    if not numbers or len(set(value)) < len(value):
        raise BadInputError(
            f"seeds = {value!r}: write a number up to {_MOST_SEEDS}, or a list of different numbers"
        )
    for seed in value:
        make_config({"seed": seed, "inputs_seed": seed}, spelling=lambda _, seed: f"seeds: {seed}")
    return list(value)


def _refuse_unequal(data: Mapping[str, Any]) -> None:
    for key in _EQUAL:
        if key in data:
            raise BadInputError(f"{key}: a study gives every run the same share; leave it out")
    if "memory_update" in data:
        raise BadInputError("memory_update: the arms of a study would learn from each other")
    if "seed" in data:
        raise BadInputError("seed: a study has several; write seeds = 2, or seeds = [0, 1]")


def _refuse_given(given: Config, arms: Sequence[StudyArm]) -> None:
    """Raise `BadInputError` for a field of the command line that would undo the file's arms."""
    if given.preset:
        raise BadInputError("--preset: write it into the file, above the arms or into one")
    for name in given.model_fields_set:
        for arm in arms:
            if name in arm.settings:
                raise BadInputError(
                    f"{option_name(name)}: arm {arm.name} sets it; change it in the file"
                )
    if "seed" in given.model_fields_set:
        raise BadInputError("--seed: a study has several; write seeds = [0, 1] into the file")
    if given.memory_update:
        raise BadInputError("--memory-update: the arms of a study would learn from each other")
    for name in _EQUAL:
        if name in given.model_fields_set:
            raise BadInputError(
                f"{option_name(name)}: a study gives every run the same share; leave it out"
            )


def _refuse_alike(entries: Sequence[CampaignEntry]) -> None:
    for first, second in combinations(entries, 2):
        if _settings(first) == _settings(second):
            raise BadInputError(
                f"arm {second.arm}: it has the same settings as arm {first.arm}; leave one out"
            )


def _settings(entry: CampaignEntry) -> dict[str, Any]:
    config = entry.config
    return {**config.model_dump(exclude={"preset"}), "policy": config.policy_text}
