"""Processor cores of a GPU's measurements: who has the GPU alone has them, other work keeps off.

A call of many small kernels takes as long as its host, and the host is slower beside compilers on
the same cores. So each GPU has a few physical cores that no process of ours works on, but for one
that holds the GPU's lock exclusively, and the candidate that it times.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from adaexplore.sandbox.family import threads_of

CORES = "ADAEXPLORE_CORES"
"""The variable by which processes that work for a problem on a GPU know their cores (`Shares`).

An empty value lets all work use all cores.
"""

_THREADS = 4  # of judge and candidate in a timed block: two launch, two attend to turnstiles
_LEAST = 2  # physical cores of a GPU
_BEHIND = 10  # of niceness: a tenth of the time beside one that has none
_MOST_KEPT = 4  # all GPUs' measurements have at most one in so many
_TOPOLOGY = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class Shares:
    """The processors of measurements on one GPU, and of all work that is no measurement."""

    measuring: frozenset[int]
    other: frozenset[int]

    def __str__(self) -> str:
        """Return the value of the variable."""
        return "/".join(",".join(map(str, sorted(p))) for p in (self.measuring, self.other))

    @staticmethod
    def given() -> Shares | None:
        """Return the shares that this process was given; None where all cores are for all work."""
        given = os.environ.get(CORES)
        if not given:
            return None
        return Shares(*(frozenset(map(int, part.split(","))) for part in given.split("/")))


def shares(gpu: int, gpus: int, cores: Sequence[frozenset[int]]) -> Shares | None:
    """Divide physical cores, each with its processors, between GPUs and other work.

    A GPU's have a processor for each thread that works in a timed block, where there are enough.
    They are evenly spread over the machine's, as GPUs are over its sockets. None where there are
    too few cores.
    """
    most = len(cores) // (_MOST_KEPT * gpus)
    if most < _LEAST:
        return None
    wanted = math.ceil(_THREADS / min(map(len, cores)))
    count = max(min(wanted, most), _LEAST)
    each = len(cores) // gpus
    ends = range(each, each * gpus + 1, each)
    kept = [frozenset[int]().union(*cores[end - count : end]) for end in ends]
    return Shares(kept[gpu], frozenset[int]().union(*cores).difference(*kept))


def shares_here(gpu: int) -> Shares | None:
    """Return the shares of a GPU on this machine, of the processors that this process may use."""
    gpus = max(gpus_here(), gpu + 1)
    return shares(gpu, gpus, physical_cores(os.sched_getaffinity(0)))


def gpus_here() -> int:
    """Return the number of NVIDIA GPUs of this machine, visible to this process or not."""
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


def physical_cores(processors: Collection[int], topology: Path = _TOPOLOGY) -> list[frozenset[int]]:
    """Return processors by physical core, in the order of their numbers."""
    cores = {frozenset(_siblings(topology, one)).intersection(processors) for one in processors}
    return sorted(cores, key=min)


def take(pid: int) -> None:
    """Give all threads of a process the cores of measurements."""
    if given := Shares.given():
        _place(pid, given.measuring)


def keep_off(pid: int) -> None:
    """Keep all threads of a process, and what they start, off the cores of measurements."""
    if given := Shares.given():
        _place(pid, given.other)


def stand_behind() -> None:
    """Let all other work go before this process, and before what it starts.

    Not where measurements have no cores of their own: what is timed would stand behind too.
    """
    if Shares.given():
        os.nice(_BEHIND)


@contextlib.contextmanager
def measuring(pid: int) -> Iterator[None]:
    """Give all threads of a process the cores of measurements in the body."""
    take(pid)
    try:
        yield
    finally:
        keep_off(pid)


def _place(pid: int, processors: frozenset[int]) -> None:
    for thread in threads_of(pid):
        with contextlib.suppress(OSError):  # it has ended, or the processors are not ours any more
            os.sched_setaffinity(thread, processors)


def _siblings(topology: Path, processor: int) -> list[int]:
    """Return the processors of the same physical core ("0,8" or "0-1"), at least this one."""
    try:
        text = (topology / f"cpu{processor}/topology/thread_siblings_list").read_text()
    except OSError:
        return [processor]
    found = [processor]
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found
