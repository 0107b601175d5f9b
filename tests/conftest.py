"""Plugins of the tests of adaexplore, and the profile of Hypothesis for the fast tests."""

from hypothesis import settings

settings.register_profile("fast", max_examples=20)

pytest_plugins = ["shared_fixtures"]
