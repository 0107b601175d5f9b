"""Plugins of the tests of adaexplore, and the profile of Hypothesis for the fast tests."""

import os

from hypothesis import Phase, settings

# Workers of pytest share the cores: threads of PyTorch would wait for each other there.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

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
