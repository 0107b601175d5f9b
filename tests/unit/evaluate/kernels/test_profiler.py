"""Memory that a call gets while it is watched."""

import pytest
import torch

from adaexplore.evaluate.kernels.profiler import poisoned_memory


@pytest.fixture(autouse=True)
def _settings_stay():
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(("was", "warn_only"), [(False, False), (True, True), (True, False)])
def test_memory_is_poisoned_in_the_body_and_settings_are_put_back(was, warn_only):
    torch.use_deterministic_algorithms(was, warn_only=warn_only)
    found = []

    def call():
        with poisoned_memory():
            found.append(torch.empty(64))
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        call()
    assert bool(found[0].isnan().all())
    assert torch.are_deterministic_algorithms_enabled() == was
    assert torch.is_deterministic_algorithms_warn_only_enabled() == warn_only
