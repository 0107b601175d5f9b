"""Plugins of the tests of adaexplore, and the profile of Hypothesis for the fast tests."""

from hypothesis import Phase, settings

settings.register_profile("fast", max_examples=20, deadline=None)
# For mutants: a failure is enough, the smallest example of it is not needed.
settings.register_profile(
    "mutants",
    max_examples=20,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
)

pytest_plugins = ["shared_fixtures"]
