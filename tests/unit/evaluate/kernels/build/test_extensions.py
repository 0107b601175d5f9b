"""Build of extensions ahead, in a candidate's process: its files and its reports."""

import base64
import pickle

import pytest
import torch

from adaexplore.core import codec
from adaexplore.core.problem import Access
from adaexplore.evaluate.judge.failures import COMPILING, raised
from adaexplore.evaluate.wire.messages import Build, RaisedReply, encode
from adaexplore.sandbox.user.values import Arguments
from adaexplore.sandbox.walls.limits import candidate_limits

pytest.importorskip("triton")  # tells the candidate of a GPU

MODULE = '''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP = """
extern "C" int twice(int x) {{
  return {expression};
}}
"""


def build():
    return load_inline("twice", CPP, is_python_module=False, no_implicit_headers=True)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        {constructor}

    def forward(self, x):
        {forward}
        return torch.empty_like(x)
'''
FEATURES = 8


def module(expression="2 * x", constructor="build()", forward="pass"):
    return MODULE.format(expression=expression, constructor=constructor, forward=forward)


def pickled(value):
    return base64.b64encode(pickle.dumps(value)).decode()


@pytest.fixture
def worker(server):
    limits = candidate_limits(4 << 30, gpu=False)
    worker = server.spawn(
        "adaexplore.evaluate.candidate.worker:main", name="candidate", limits=limits, confined="cpu"
    )
    yield worker
    worker.end()


@pytest.fixture
def build(worker):
    inputs = torch.empty(4, FEATURES, device="meta")

    def build(source):
        request = Build(
            source=source,
            capability=(9, 0),
            seed=0,
            mode="as-built",
            access=Access(),
            init=pickled(Arguments([FEATURES])),
            inputs=(pickled(Arguments([inputs])),),
            extensions=True,
        )
        return worker.call(encode(request), 120.0)

    return build


@pytest.mark.parametrize("when", [pytest.param("constructor", marks=pytest.mark.slow), "forward"])
def test_a_built_extension_is_not_built_again(worker, build, when):
    steps = {"constructor": "pass", "forward": "pass", when: "build()"}
    assert build(module(**steps)) == {}
    library = worker.folder / "extensions" / "twice" / "twice.so"
    built_at = library.stat().st_mtime_ns
    assert build(module(**steps)) == {}
    assert library.stat().st_mtime_ns == built_at


def test_the_child_claims_a_gpu_and_sees_none(worker, build):
    constructor = (
        "assert torch.cuda.get_device_capability() == (9, 0); "
        "import os; assert os.environ['CUDA_VISIBLE_DEVICES'] == ''; build()"
    )
    assert build(module(constructor=constructor)) == {}
    assert (worker.folder / "extensions" / "twice" / "twice.so").exists()


def test_a_build_that_fails_is_a_compile_error_at_its_line(build):
    source = module(expression="2 * y")
    verdict = raised(codec.read(RaisedReply, build(source)).raised, COMPILING, source)
    assert verdict.status == "compile_error"
    assert "was not declared" in verdict.feedback.message
    assert verdict.feedback.source_line == "return 2 * y;"
    assert source.splitlines()[verdict.feedback.line - 1].strip() == "return 2 * y;"


@pytest.mark.parametrize(
    "constructor",
    [
        "raise ValueError('no')",
        pytest.param("import os; os._exit(3)", marks=pytest.mark.slow),
        "import os; os.abort()",
        pytest.param("raise SystemExit", marks=pytest.mark.slow),
    ],
)
def test_other_failures_are_left_to_the_real_call(build, constructor):
    assert build(module(constructor=constructor)) == {}
    assert build(module()) == {}


@pytest.mark.slow
def test_a_child_that_waits_forever_is_killed(worker, build):
    forever = "import signal; build(); signal.pause()"
    assert build(module(constructor=forever)) == {}
    assert (worker.folder / "extensions" / "twice" / "twice.so").exists()
    assert not (worker.folder / "extensions" / "twice" / "lock").exists()
