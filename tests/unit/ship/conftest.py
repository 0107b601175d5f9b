"""The same kernel of a small block for all tests, as a shipped and as a live package."""

import importlib

import pytest
import torch
from shipped_blocks import Block, Net, candidate, no_compiler, record

from adaexplore.package.describe import describe_kernel
from adaexplore.package.imported import import_kernel
from adaexplore.problems.live import capture


@pytest.fixture(scope="session")
def x():
    return torch.rand(3, 16, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="session")
def run(tmp_path_factory, x):
    """The run of a block of a live model."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("runs") / "block"
    record(Block().eval(), path, candidate(), [x, torch.rand(1, 16)])
    return path


@pytest.fixture(scope="session")
def package(run, tmp_path_factory):
    """The folder of the shipped package."""
    from adaexplore.ship.ship import ship

    folder = tmp_path_factory.mktemp("packages") / "package"
    with no_compiler():
        return ship(run, folder, name="block_kernel", hub=folder.with_name("hub")).folder


@pytest.fixture(scope="session")
def hub(package):
    """The folder of the same package in the layout of Hugging Face's kernels."""
    return package.with_name("hub")


@pytest.fixture(scope="session")
def shipped(package):
    """The package, imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(package / "src"))
        yield importlib.import_module("block_kernel")


@pytest.fixture(scope="session")
def live(tmp_path_factory, x):
    """The package that a model which is alive in this process gets."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("live")
    captured = capture(Block().eval(), folder=folder, calls=[((x,), {}), ((x[:1],), {})])
    described = describe_kernel(captured.problem, candidate(), "block_kernel", folder)
    return import_kernel(described, folder / "kernels")


@pytest.fixture(scope="session", params=["shipped", "live"])
def kernel(request):
    """Every kind of package."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def net():
    torch.manual_seed(3)
    return Net().eval()
