"""Compilation before a candidate gets the GPU; it needs no GPU."""

import base64
import pickle

import pytest
import torch
from sources import DOUBLE_KERNEL, changed

from adaexplore.core.problem import Access
from adaexplore.evaluate.kernels.ahead import compile_ahead
from adaexplore.evaluate.wire.messages import Build
from adaexplore.sandbox.user.values import Arguments, Inputs

WRAPPED = changed(
    DOUBLE_KERNEL,
    "        out = torch.empty_like(x)",
    "        from torch._C import _cuda_getCurrentRawStream as get_raw_stream\n"
    "        stream = get_raw_stream(0)\n"
    "        with torch.cuda._DeviceGuard(0):\n"
    "            out = torch._C._dynamo.guards._empty_strided_cuda(x.shape, x.stride(), x.dtype)",
)
AFTER_AN_ERROR = changed(
    DOUBLE_KERNEL, "        return out", "        raise RuntimeError('no data')"
)


def pickled(value):
    return base64.b64encode(pickle.dumps(value)).decode()


@pytest.mark.parametrize("source", [DOUBLE_KERNEL, WRAPPED, AFTER_AN_ERROR])
def test_the_kernels_of_a_call_lie_in_the_cache(source, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.chdir(tmp_path)
    compile_ahead(
        Build(
            source=source,
            capability=(9, 0),
            seed=0,
            mode="as-built",
            access=Access(),
            init=pickled(Arguments((), {})),
            inputs=(pickled(Inputs((torch.empty(4096, device="meta"),), {})),),
            extensions=False,
        )
    )
    assert len(list(tmp_path.rglob("*.cubin"))) == 1
