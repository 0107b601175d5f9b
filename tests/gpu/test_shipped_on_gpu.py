"""A shipped Triton kernel in a live model on a GPU: graphs, streams, training, other devices."""

import copy
import importlib
import os
import subprocess
import sys

import pytest
import torch
from shipped_blocks import record
from torch import nn

from adaexplore.ship.check import check
from adaexplore.ship.ship import ship

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]
ROWS, WIDTH = 256, 1024
KERNEL = """
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def scaled(x, weight, y, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    values = tl.load(x + row * width + columns, mask=mask, other=0.0).to(tl.float32)
    factor = tl.rsqrt(tl.sum(values * values) / width + eps)
    weights = tl.load(weight + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(y + row * width + columns, values * factor * weights, mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1024, dtype=torch.bfloat16))

    def forward(self, x):
        y = torch.empty_like(x)
        scaled[(x.shape[0],)](x, self.weight, y, x.shape[1], 1e-6, BLOCK=1024)
        return y
"""


class RMSNorm(nn.Module):
    """A layer of a user's model."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(WIDTH) + 0.5)

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (wide * self.weight.float()).to(x.dtype)


def model():
    torch.manual_seed(0)
    layers = RMSNorm(), nn.Linear(WIDTH, WIDTH), RMSNorm()
    return nn.Sequential(*layers).to("cuda:0", torch.bfloat16).eval()


@pytest.fixture(scope="module")
def x():
    torch.manual_seed(1)
    return torch.randn(ROWS, WIDTH, device="cuda:0", dtype=torch.bfloat16)


@pytest.fixture(scope="module")
def package(tmp_path_factory, x):
    folder = tmp_path_factory.mktemp("shipped")
    record(model()[0], folder / "run", KERNEL, [x], language="triton")
    return ship(folder / "run", folder / "package", name="norm_kernel").folder


@pytest.fixture(scope="module")
def kernel(package):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(package / "src"))
        yield importlib.import_module("norm_kernel")


@pytest.fixture
def plain():
    return model()


@pytest.fixture
def fast(kernel, plain):
    net = copy.deepcopy(plain)
    assert kernel.apply(net).modules == ("0", "2")
    kernel.reset_refusals()
    return net


def assert_same(found, expected):
    torch.testing.assert_close(found, expected, rtol=3e-2, atol=3e-2)


def test_the_package_s_own_tests_pass_without_adaexplore(package, tmp_path):
    (tmp_path / "adaexplore.py").write_text("raise ImportError('not here')")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=package,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{package / 'src'}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_check_of_it_is_good(package):
    checked = check(package, tolerance=1)
    assert checked.is_good, checked


@pytest.mark.usefixtures("shared_gpu")
@torch.no_grad()
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled_whole(mode, kernel, fast, plain, x):
    torch.compiler.reset()
    compiled = torch.compile(fast, fullgraph=True, mode=mode)
    for factor in (1, 2, 3):
        assert_same(compiled(x * factor).clone(), plain(x * factor))
    assert kernel.refusals() == {}


@pytest.mark.usefixtures("shared_gpu")
@torch.no_grad()
def test_in_a_cuda_graph_that_follows_the_weights(kernel, fast, plain, x):
    given = x.clone()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        fast(given)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = fast(given)
    for factor in (1, 3):
        given.copy_(x * factor)
        for net in (fast, plain):
            net[0].weight.data.mul_(factor)
        graph.replay()
        assert_same(found, plain(x * factor))
    assert kernel.refusals() == {}


@pytest.mark.usefixtures("shared_gpu")
def test_a_training_step(kernel, fast, plain, x):
    given = [x.clone().requires_grad_() for _ in range(2)]
    for net, inputs in zip((fast, plain), given, strict=True):
        net(inputs).float().pow(2).mean().backward()
    assert_same(given[0].grad, given[1].grad)
    for one, other in zip(fast.parameters(), plain.parameters(), strict=True):
        assert_same(one.grad, other.grad)
    assert kernel.refusals() == {}


@pytest.mark.usefixtures("shared_gpu")
@torch.no_grad()
def test_unseen_shapes_types_and_devices_run_the_original(kernel, fast, plain, x):
    assert_same(fast(x[:7]), plain(x[:7]))
    assert_same(fast.cpu()(x.cpu()), plain.cpu()(x.cpu()))
    assert_same(fast.float()(x.cpu().float()), plain.float()(x.cpu().float()))
    assert sum(kernel.refusals().values()) == 6


@pytest.mark.usefixtures("shared_gpu")
@torch.no_grad()
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs a second GPU")
def test_on_another_gpu(kernel, fast, plain, x):
    assert_same(fast(x), plain(x))
    fast.to("cuda:1"), plain.to("cuda:1")
    assert_same(fast(x.to("cuda:1")), plain(x.to("cuda:1")))
    assert kernel.refusals() == {}
