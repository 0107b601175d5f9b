"""The command line. Importing it loads no torch: commands import what they need."""

from __future__ import annotations

import logging
import sys
import warnings

from adaexplore.cli.app import app
from adaexplore.cli.one_line import run_app

__all__ = ["main", "run_app"]


def main() -> None:
    """Run a command; every expected failure is one line on stderr and an exit code.

    0: done (`evaluate`: any verdict). 1: a finding, as the command's help says. 2: bad input.
    3: infrastructure trouble. 130: interrupted.
    """
    if not sys.warnoptions:  # what libraries tell programmers is no news to users
        warnings.simplefilter("ignore")
        logging.getLogger().addHandler(logging.NullHandler())
    run_app(app, "adaexplore")
