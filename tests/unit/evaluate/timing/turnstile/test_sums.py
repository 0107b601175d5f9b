"""Sums over outputs, their kernels run by Triton's interpreter, or on a GPU."""

import functools
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

from adaexplore.evaluate.timing.turnstile import sums

DEVICES = ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)]
KEY = (1 << 63) - 5
LEAST_PIECE_BYTES, MOST_PIECES = 1 << 13, 1 << 12
CHAINS = 128


def drawn(size, dtype=torch.uint8):
    """An output; its memory goes on behind it."""
    generator = torch.Generator().manual_seed(size)
    memory = torch.randint(0, 256, (size + 32 - size % 16,), dtype=torch.uint8, generator=generator)
    return memory.view(dtype)[: size // dtype.itemsize]


DTYPES = [
    *(torch.bool, torch.float8_e4m3fn, torch.int16, torch.bfloat16, torch.float32),
    *(torch.int64, torch.float64, torch.complex64, torch.complex128),
]
CASES = {
    **{f"{size} bytes": [drawn(size)] for size in (1, 7, 8, 9, 8200, 16384, 20003)},
    **{str(dtype): [drawn(2064, dtype)] for dtype in DTYPES},
    "a number": [drawn(4, torch.float32).reshape(())],
    "channels last": [drawn(960, torch.float32).view(2, 3, 5, 8).permute(0, 3, 1, 2)],
    "none": [],
    "without elements": [torch.empty(0, 3)],
    "three": [drawn(25001), torch.empty(0), drawn(30, torch.bfloat16)],
}

PROGRAM = """
import pickle, sys
import torch
from adaexplore.evaluate.timing.turnstile.sums import sum_of

device, key = torch.device(sys.argv[1]), int(sys.argv[2])
cases = torch.load(sys.argv[3])
odd = cases["20003 bytes"]

def there(outputs):
    whole = [out.untyped_storage() for out in outputs]
    moved = [memory.clone() if device.type == "cpu" else memory.cuda() for memory in whole]
    return [
        torch.empty(0, dtype=out.dtype, device=device).set_(memory, 0, out.shape, out.stride())
        for out, memory in zip(outputs, moved)
    ]

def changed(at, to):
    [out] = there(odd)
    out[at] = to(out[at].clone())
    return sum_of([out], key, device)

def flipped(at):
    return changed(slice(at, at + 1), lambda byte: byte ^ 4)

def swapped(at, distance):
    [out] = there(odd)
    one, other = slice(at, at + 8), slice(at + distance, at + distance + 8)
    out[one], out[other] = out[other].clone(), out[one].clone()
    return sum_of([out], key, device)

def beyond():
    [out] = there(odd)
    out.as_strided((20008,), (1,))[20003:] = 7
    return sum_of([out], key, device)

repeated = ["three"] if device.type == "cpu" else list(cases)  # the interpreter is slow
found = {
    "sums": {name: sum_of(there(outputs), key, device) for name, outputs in cases.items()},
    "again": {name: sum_of(there(cases[name]), key, device) for name in repeated},
    "device": device.type,
    "other key": sum_of(there(odd), key - 1, device),
    "flipped": [flipped(at) for at in (0, 8191, 16383, 16384, 20002)],
    "swapped": [swapped(at, by) for at, by in ((0, 8), (0, 8192), (16, 16384))],
    "beyond": beyond(),
}
with open(sys.argv[4], "wb") as file:
    pickle.dump(found, file)
"""

PASSAGES = """
import ctypes, pickle, sys, threading
from unittest.mock import patch
import torch
from adaexplore.evaluate.timing.turnstile import on_device, seals
from adaexplore.evaluate.timing.turnstile.sums import Sums, sum_of

seals._LEAST_BYTES = 1 << 12
CALLS, CPU = 3, torch.device("cpu")
KEYS = [(1 << 62) + i for i in range(CALLS)]

class Driver:
    def register(self, address, size): pass
    def unregister(self, address): pass
    def wait(self, address, least):
        while ctypes.c_int64.from_address(address).value < least: pass

def play(early):
    places = [[torch.zeros(300), torch.zeros(5, dtype=torch.bool)] for _ in range(CALLS)]
    sums, taken, complete = Sums(places, CPU), [], threading.Semaphore(0)

    def left(i, _):
        complete.acquire()
        taken.append([place.clone() for place in places[i]])

    turnstile = on_device.DeviceTurnstile()
    with (
        patch.object(on_device, "_CudaDriver", Driver),
        patch.object(on_device, "cache_key_of", seals.CacheKey),
    ):
        gate = on_device.DeviceGate(turnstile.other_end, "cpu")
    with turnstile.attended(CALLS, lambda i: KEYS[i], left) as passages:
        for i in range(CALLS):
            gate.enter(i)
            if early:
                gate.delivered(i, sums)
            places[i][0].fill_(i + 1)
            places[i][1].fill_(True)
            if not early:
                gate.delivered(i, sums)
            complete.release()
        gate.leave()
    return [
        sum_of(outputs, key, CPU) == told
        for outputs, key, told in zip(taken, KEYS, passages.sums, strict=True)
    ]

with open(sys.argv[1], "wb") as file:
    pickle.dump([play(early=False), play(early=True)], file)
"""

VARIANTS = """
import torch
from adaexplore.evaluate.kernels import driver
from adaexplore.evaluate.kernels.capture import Recorder
from adaexplore.evaluate.kernels.targets import TARGETS
from adaexplore.evaluate.timing.turnstile.sums import Sums

driver.install(TARGETS["sm_90"])
recorder = Recorder(lambda _: None)
recorder.install()
keys, memory = torch.zeros(4, dtype=torch.int64), torch.zeros(1 << 22, dtype=torch.uint8)
for size in (1, 8, 65537, 1 << 20, 17 << 16):
    sums = Sums([[memory[:size]], [memory[1:5]]], torch.device("cpu"))
    for call in range(2):
        for key, number in ((keys, 1), (keys[1:], 16), (keys[2:], (1 << 40) + 3)):
            sums.tell(call, key, number, 16 * number, number)
print(*sorted({(launch.kernel.name, launch.kernel.key) for launch in recorder.launches}), sep="\\n")
"""


def run(program, *arguments, **variables):
    settings = [f"{name}={value}" for name, value in variables.items()]
    command = ["env", *settings, sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=DEVICES)
def found(request, tmp_path_factory):
    """What a process finds that sums outputs; it may choose Triton's interpreter."""
    folder = tmp_path_factory.mktemp("sums")
    torch.save(CASES, folder / "cases.pt")
    interpret = {"TRITON_INTERPRET": 1} if request.param == "cpu" else {}
    run(PROGRAM, request.param, KEY, folder / "cases.pt", folder / "found.pkl", **interpret)
    return pickle.loads((folder / "found.pkl").read_bytes())


def mixed(x):
    x = (x ^ (x >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    return x ^ (x >> np.uint64(29))


def chained(state, word):
    with np.errstate(over="ignore"):
        return mixed(state ^ word) + word


def piece_sum(words, key, piece):
    """Chains of words, and the ends of the chains one after the other, as the interpreter does."""
    numbers = np.arange(CHAINS, dtype=np.uint64) + np.uint64(CHAINS * piece % (1 << 64))
    state = mixed(np.uint64(key) + numbers * np.uint64(0x5E3779B97F4A7C15))
    for row in np.pad(words, (0, -len(words) % CHAINS)).reshape(-1, CHAINS):
        state = chained(state, row)
    return functools.reduce(chained, state)


def sum_by_definition(outputs, key):
    """The sum over the sums of pieces."""
    ends = []
    total = sum(output.nbytes for output in outputs)
    piece_bytes = max(LEAST_PIECE_BYTES, 8 * -(-total // (8 * MOST_PIECES)))
    for output in outputs:
        memory = output.as_strided((output.numel(),), (1,)).view(torch.uint8).numpy().tobytes()
        for start in range(0, len(memory), piece_bytes):
            part = memory[start : start + piece_bytes]
            words = np.frombuffer(part + bytes(-len(part) % 8), dtype=np.uint64)
            ends.append(piece_sum(words, key, len(ends)))
    return int(piece_sum(np.array(ends, dtype=np.uint64), key, -1).astype(np.int64))


@pytest.mark.parametrize("name", CASES)
def test_the_sum_of_outputs_of_every_form_is_the_defined_one(found, name):
    if found["device"] == "cpu":  # a GPU takes the ends of chains in another order
        assert found["sums"][name] == sum_by_definition(CASES[name], KEY)


def test_the_same_outputs_have_the_same_sum(found):
    assert all(found["sums"][name] == value for name, value in found["again"].items())


def test_large_outputs_have_large_pieces():
    """A sum over many sums of pieces would take long; few pieces would leave processors idle."""
    pieces = sums._pieces([torch.empty(1 << 30, dtype=torch.uint8, device="meta")])
    assert len(pieces) == MOST_PIECES
    assert pieces[:, 1].sum() == 1 << 27


def test_every_byte_every_place_and_the_key_count(found):
    sums = [found["sums"]["20003 bytes"], found["other key"], *found["flipped"], *found["swapped"]]
    assert len(set(sums)) == len(sums) == 10


def test_what_lies_behind_an_output_does_not_count(found):
    assert found["beyond"] == found["sums"]["20003 bytes"]


def test_the_sum_comes_with_the_notice_and_outputs_that_come_later_have_another(tmp_path):
    """The gate is real; the interpreter plays the device, and a loop its waiting stream."""
    run(PASSAGES, tmp_path / "found.pkl", TRITON_INTERPRET=1)
    right, early = pickle.loads((tmp_path / "found.pkl").read_bytes())
    assert right == [True] * 3
    assert early == [False] * 3


def test_a_kernel_is_the_same_for_all_outputs():
    """Compiling or loading another one would wait for the device, which waits for a call."""
    variants = run(VARIANTS).splitlines()
    assert len(variants) == 2
