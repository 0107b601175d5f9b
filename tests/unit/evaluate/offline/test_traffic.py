"""Counting the bytes that a launch moves, on tensors that lie side by side."""

import numpy as np
import pytest
import torch

from adaexplore.evaluate.offline.traffic import TrafficMemory

FLOAT = np.dtype(np.float32)


@pytest.fixture
def neighbours():
    """Two tensors of 16 and 8 numbers in one piece of memory, which begins at a cache line."""
    whole = np.zeros(64, np.float32)
    begin = -(whole.ctypes.data // 4) % 16
    return [torch.from_numpy(part) for part in np.split(whole[begin : begin + 24], [16])]


def load(memory, tensor, elements):
    at = np.array([tensor.data_ptr() + 4 * i for i in elements], np.uint64)
    memory.load(at, np.ones(at.shape, bool), np.zeros(at.shape, FLOAT), FLOAT)


def test_a_sector_counts_for_the_tensor_that_it_lies_in(neighbours):
    first, second = neighbours
    memory = TrafficMemory([second, first])
    for _ in range(3):
        load(memory, first, range(8, 16))
    assert memory.moved_bytes(1.0) == (64.0, 96.0)  # the first has 64 bytes, the second 32
    load(memory, second, [0])
    assert memory.moved_bytes(1.0) == (96.0, 128.0)


def test_lanes_in_one_sector_move_it_once(neighbours):
    memory = TrafficMemory(neighbours)
    load(memory, neighbours[0], [0, 1, 7, 7])
    load(memory, neighbours[0], [7, 8])
    assert memory.moved_bytes(1.0)[1] == 32 + 64


def test_programs_that_were_not_run_move_as_much(neighbours):
    memory = TrafficMemory(neighbours)
    load(memory, neighbours[0], [0])
    assert memory.moved_bytes(0.25) == (64.0, 128.0)


def test_what_lies_outside_all_tensors_does_not_count(neighbours):
    memory = TrafficMemory(neighbours[:1])
    load(memory, neighbours[0], [-1, 16, 17])
    assert memory.moved_bytes(1.0) == (0.0, 0.0)
