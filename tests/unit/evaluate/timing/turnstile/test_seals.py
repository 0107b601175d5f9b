"""Seals, their kernels run by Triton's interpreter, or on a GPU."""

import pickle
import subprocess
import sys

import pytest
import torch

KEY = (1 << 63) - 5
DEVICES = ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)]
SIZES = [1, 70, 100, 5000]  # words

PROGRAM = """
import pickle, sys
from unittest.mock import patch
import torch
from adaexplore.evaluate.timing.turnstile import seals

device, key, sizes = sys.argv[1], int(sys.argv[2]), [int(size) for size in sys.argv[3].split()]
seals._LEAST_BYTES = 1 << 12
cache = seals.CacheKey(torch.device(device))

def memories():
    return [torch.zeros(size, dtype=torch.int64, device=device) for size in sizes]

def turned(key, found=None):
    found = memories() if found is None else found
    seals.Seals([memories(), found], cache).turn_with(key, 1)
    return found

def without_late(key, found):
    with patch.object(seals, "_exclusive_or_late", {(len(found),): lambda *_, **__: None}):
        return turned(key, found)

class Less:
    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        return self.kernel[(grid[0] - 1,)]

class Elsewhere(Less):
    def __getitem__(self, grid):
        return lambda memory, *rest, **options: self.kernel[grid](elsewhere, *rest, **options)

def cheated(name, cheat):
    kept, kernel = turned(key), getattr(seals, name)
    turned(key - 1)  # so that the memory holds another stream
    with patch.object(seals, name, cheat(kernel)):
        return turned(key, kept)

torch.manual_seed(3)
sealed = [m.clone() for m in turned(key)]
late = [[int(m.count_nonzero()) for m in without_late(k, turned(k))] for k in range(key - 3, key)]
places = [int(without_late(k, turned(k))[-1].nonzero()[0]) for k in range(key - 3, key)]
elsewhere = torch.empty_like(cache._cache)
found = {
    "sealed": sealed,
    "again": turned(key, [m.clone() for m in sealed]),
    "other": turned(key - 1),
    "late": late,
    "places": places,
    "cheated": [
        cheated("_overwrite", Less), cheated("_overwrite", Elsewhere), cheated("_read_back", Less)
    ],
    "drawn": torch.rand(1).item(),
}
with open(sys.argv[4], "wb") as file:
    pickle.dump(found, file)
"""


@pytest.fixture(scope="module", params=DEVICES)
def found(request, tmp_path_factory):
    """What a process finds that seals memories of zeros; it may choose Triton's interpreter."""
    out = tmp_path_factory.mktemp("seals") / "found.pkl"
    sizes = " ".join(map(str, SIZES))
    interpret = {"TRITON_INTERPRET": "1"} if request.param == "cpu" else {}
    command = [sys.executable, "-c", PROGRAM, request.param, str(KEY), sizes, str(out)]
    done = subprocess.run(
        ["env", *(f"{k}={v}" for k, v in interpret.items()), *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return pickle.loads(out.read_bytes())


def test_sealing_twice_gives_what_was_there(found):
    assert not any(bool(words.any()) for words in found["again"])
    assert all(bool(words.all()) for words in found["sealed"])


def test_every_bit_is_sealed(found):
    words = found["sealed"][-1]
    shares = [float((words >> bit & 1).float().mean()) for bit in range(64)]
    assert 0.4 < min(shares) <= max(shares) < 0.6


def test_no_two_words_of_a_key_are_sealed_alike_nor_under_another_key(found):
    streams = torch.cat([*found["sealed"], *found["other"]])
    assert len(set(streams.tolist())) == 2 * sum(SIZES)


def test_some_words_at_a_place_of_their_own_are_late(found):
    assert found["late"] == [[min(size, 64) for size in SIZES]] * 3
    assert len(set(found["places"])) == 3


@pytest.mark.parametrize("cheat", [0, 1, 2], ids=["less", "elsewhere", "less_read_back"])
def test_late_words_stay_sealed_where_the_cache_is_not_overwritten_and_read_whole(found, cheat):
    opened = found["cheated"][cheat]
    assert [int(words.count_nonzero()) > 0 for words in opened] == [True] * len(SIZES)
    assert int(opened[-1].count_nonzero()) <= 2 * 64


def test_the_state_of_the_default_generator_stays(found):
    torch.manual_seed(3)
    assert found["drawn"] == torch.rand(1).item()


def test_all_kernels_are_compiled_before_workers_start(tmp_path):
    program = (
        "from adaexplore.evaluate.timing.turnstile import warm\n"
        "from adaexplore.evaluate.kernels.targets import TARGETS\n"
        "print(*warm.compile_for(TARGETS['sm_90']))"
    )
    done = subprocess.run(
        ["env", f"TRITON_CACHE_DIR={tmp_path}", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
    )
    compiled = {file.stem for file in tmp_path.rglob("*.cubin")}
    assert set(done.stdout.split()) == compiled
    assert len(compiled) == 7
