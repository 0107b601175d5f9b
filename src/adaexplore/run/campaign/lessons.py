"""The memory of a campaign that grows between the turns of its problems."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Language
from adaexplore.core.protocols.client import ModelClient
from adaexplore.languages import DIALECTS
from adaexplore.memory.check import Checker
from adaexplore.run.campaign.file import CampaignEntry, CampaignPlan
from adaexplore.run.learning.learn import Tell
from adaexplore.run.learning.lessons import Lessons
from adaexplore.run.learning.machine import Machine
from adaexplore.run.proposers import check_update
from adaexplore.run.recall import named_rules
from adaexplore.run.session import setup_of


def check_lessons(order: CampaignPlan) -> None:
    """Raise `BadInputError` for a memory that this campaign cannot update."""
    if not order.config.memory_update:
        return
    if order.arms:
        raise BadInputError("--memory-update: the arms of a study share no memory; leave it out")
    languages = {_language(entry) for entry in order.entries}
    taught = [language for language in languages if DIALECTS[language].by_triton]
    check_update(order.config, min(taught or languages))


def lessons_of(
    order: CampaignPlan, folder: Path, clients: Mapping[str, ModelClient], tell: Tell
) -> Lessons:
    """Return the lessons of a campaign in a folder; the first of its models writes the rules.

    Prompts show the rules of `--memory` and those of the growing file.
    """
    config = order.config

    def checker() -> Checker:
        entry = next(entry for entry in order.entries if DIALECTS[_language(entry)].by_triton)
        return Machine(_device(entry), entry.config.target).checker()

    return Lessons(
        Path(config.memory_update),
        folder / "rules",
        checker,
        way=config.learning,
        ask=next(iter(clients.values())).ask,
        base=named_rules(config.memory),
        tell=tell,
    )


def _language(entry: CampaignEntry) -> Language:
    return setup_of(entry.config.model_copy(update={"device": _device(entry)})).language


def _device(entry: CampaignEntry) -> str | None:
    return next(iter(entry.devices), None)
