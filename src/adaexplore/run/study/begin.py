"""A study that begins: its folder, with the runs to make."""

from __future__ import annotations

import shlex
from pathlib import Path

from adaexplore.core.config import Config
from adaexplore.core.configure import words
from adaexplore.run.campaign.run import begin_order
from adaexplore.run.study.file import read_study_file


def begin_study(file: Path, given: Config) -> Path:
    """Make the folder of the study in a TOML file; return it.

    Raises `BadInputError` for a study that cannot be carried out. No process is started.
    """
    order = read_study_file(file, given)
    command = shlex.join(["adaexplore", "study", str(file), *words(given)])
    return begin_order(order, command, "study")
