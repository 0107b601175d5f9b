"""Plugins of the tests of adaexplore_lab."""

import pytest

from adaexplore_lab.cli import main

pytest_plugins = ["shared_fixtures"]


@pytest.fixture
def lab(command_line):
    """Run a command line of adaexplore-lab."""
    return command_line("adaexplore-lab", main)
