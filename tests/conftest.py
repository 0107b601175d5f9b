"""Processes that many tests share: starting them costs seconds, using them milliseconds."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import settings

from adaexplore.sandbox.process import ForkServer

# How long an example takes depends on what else the machine does.
settings.register_profile("anywhere", deadline=None)
settings.load_profile("anywhere")

SECRET = "sk-not-for-candidates"
_ENTRIES = Path(__file__).parent / "unit" / "sandbox"
_PRELOAD = (
    "torch",
    "adaexplore.evaluate.judge.judge",
    "adaexplore.evaluate.judge.worker",
    "adaexplore.evaluate.kernels.warm_triton:warm_for_gpu",
    "adaexplore.evaluate.kernels.toolkit:use_toolkit",
    "adaexplore.evaluate.offline.judge",
    "adaexplore.evaluate.offline.worker",
    "worker_entries:compile_nothing",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what needs a GPU where there is none."""
    needing = [item for item in items if item.get_closest_marker("gpu")]
    if needing:
        import torch

        if not torch.cuda.is_available():
            for item in needing:
                item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))


@pytest.fixture(scope="session")
def server():
    """A fork server, started while a key lay in the environment.

    Its workers can import `worker_entries`. `torch.compile` hands back the module as it is, which
    saves some ten seconds for every reference; the command line's tests run the real one.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", SECRET)
        patch.setenv("PYTHONPATH", str(_ENTRIES), prepend=os.pathsep)
        server = ForkServer.start(_PRELOAD)
    yield server
    server.close()


@pytest.fixture(scope="session")
def eventually():
    """Waits until a condition holds; false if it does not in half a minute."""

    def eventually(condition) -> bool:
        deadline = time.monotonic() + 30.0
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    return eventually


@pytest.fixture(scope="session")
def is_running():
    """Whether a process exists and is not a zombie."""

    def is_running(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False

    return is_running
