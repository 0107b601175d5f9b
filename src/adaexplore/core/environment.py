"""The environment of a run: the hardware and software that its candidates are judged on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from adaexplore.core import codec


@dataclass(frozen=True, slots=True)
class Isolation:
    """The mechanism that isolates a candidate's process, by subject; empty where there is none.

    `missing` has one line for the user for each protection that this machine cannot give.
    """

    network: str = ""
    files: str = ""
    signals: str = ""
    system_calls: str = ""
    processes: str = ""
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Environment:
    """The hardware and software of a run; a value that is not known is empty or 0.

    `device` is "cpu" or "cuda:<index>". `cores` counts the processors that may be used, `threads`
    PyTorch's threads where the device is the CPU. `compute_capability` is written "9.0".
    `commit` is that of this package's checkout, `cxx` the C++ compiler. `nvcc`, `helion` and
    `cutedsl` are versions of a language's own compiler, where candidates are written in it.
    """

    device: str = "cpu"
    cpu: str = ""
    cores: int = 0
    threads: int = 0
    python: str = ""
    torch: str = ""
    triton: str = ""
    system: str = ""
    commit: str = ""
    gpu: str = ""
    gpu_memory_gib: float = 0.0
    compute_capability: str = ""
    multiprocessors: int = 0
    l2_bytes: int = 0
    cuda: str = ""
    driver: str = ""
    cxx: str = ""
    nvcc: str = ""
    helion: str = ""
    cutedsl: str = ""
    isolation: Isolation = field(default_factory=Isolation)

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` reads back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Environment:
        """Inverse of `to_json`; a field that is missing has its default."""
        return codec.read(cls, data)
