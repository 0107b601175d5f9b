"""Plugins of the tests of adaexplore."""

pytest_plugins = ["shared_fixtures"]
