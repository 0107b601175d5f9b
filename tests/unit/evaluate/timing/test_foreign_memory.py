"""The memory of a real child."""

import os
import subprocess

import pytest
import torch

from adaexplore.evaluate.timing.foreign_memory import bytes_of, may_read, memory_of


@pytest.fixture
def child():
    """A child with the same memory."""
    held = torch.arange(70_000, dtype=torch.int32)
    ends = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ends[1])
        os.read(ends[0], 1)
        os._exit(0)
    yield pid, held
    os.close(ends[1])
    os.waitpid(pid, 0)


def test_what_a_child_holds_is_read(child):
    pid, held = child
    if not may_read(pid):
        pytest.skip("this kernel denies it")
    address = held.data_ptr()
    before = held.clone()
    held.zero_()
    assert torch.equal(memory_of(pid, address, held.nbytes), bytes_of([before])[0])


def test_where_nothing_is_are_zeros(child):
    assert not memory_of(child[0], 8, 4096).any()


def test_a_process_that_has_ended_is_not_read():
    process = subprocess.Popen(["true"])
    process.wait()
    assert not may_read(process.pid)


@pytest.mark.parametrize("dtype", [torch.bool, torch.bfloat16, torch.complex64, torch.float8_e5m2])
def test_every_dtype_has_bytes(dtype):
    tensor = torch.zeros(3, 5, dtype=dtype)
    assert bytes_of([tensor.T, tensor[:0]])[0].numel() == tensor.nbytes
