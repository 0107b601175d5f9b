"""What a package was made of, as `spec.json` states it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adaexplore.runtime.cuts import Cut
from adaexplore.runtime.interface import Interface

Form = tuple[tuple[int, ...], tuple[int, ...], str, str]
"""Shape, strides, dtype and kind of device of a tensor."""


@dataclass(frozen=True, slots=True)
class VerifiedWorkload:
    """Verified inputs: where they come from, and the forms of all tensors that cross the border.

    `draw` is an expression over the names of the original's file; with `file`, the inputs lie in
    that file. `time_us` is the time that the verdict states for the kernel, `baseline_us` that of
    the strongest baseline, both 0 where it was not measured.
    """

    name: str
    draw: str
    file: str
    inputs: tuple[Form, ...]
    outputs: tuple[Form, ...]
    time_us: float = 0.0
    baseline_us: float = 0.0

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> VerifiedWorkload:
        """Read the JSON form."""
        forms = {key: tuple(map(_form, data[key])) for key in ("inputs", "outputs")}
        return VerifiedWorkload(**{**data, **forms})


@dataclass(frozen=True, slots=True)
class Spec:
    """The contents of `spec.json`.

    `namespace` is that of the operations in torch: two versions of a package may be loaded at once.
    `state` has the names of the original's tensors in the order in which they cross the border, and
    `state_forms` their forms; `ties` maps further names to the first name of the same tensor.
    `drawn` has mean and deviation of the large parameters that tests draw instead of storing them.
    With `fresh`, the candidate keeps values that it computes from weights: every call has a new
    one. With `backward`, the kernel was verified with its own backward pass, and times are those of
    training steps.
    `cuts` are the modules whose forwards have the run of operations that the kernel is for; without
    them, it is for whole modules.
    `gpu` is the compute capability, empty on the CPU. `error` is the largest relative error of an
    output that is no finding.
    """

    name: str
    namespace: str
    class_name: str
    device: str
    gpu: str
    seed: int
    mode: str
    fresh: bool
    torch: str
    triton: str
    interface: Interface
    workloads: tuple[VerifiedWorkload, ...]
    state: tuple[str, ...]
    state_forms: tuple[Form, ...]
    ties: Mapping[str, str]
    drawn: Mapping[str, tuple[float, float]]
    error: float
    backward: bool = False
    cuts: tuple[Cut, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` reads back."""
        cuts = [cut.to_json() for cut in self.cuts]
        return {**asdict(self), "interface": self.interface.to_json(), "cuts": cuts}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Spec:
        """Inverse of `to_json`, after JSON."""
        return Spec(
            **{
                **data,
                "interface": Interface.from_json(data["interface"]),
                "workloads": tuple(map(VerifiedWorkload.from_json, data["workloads"])),
                "state": tuple(data["state"]),
                "state_forms": tuple(map(_form, data["state_forms"])),
                "cuts": tuple(map(Cut.from_json, data.get("cuts", ()))),
            }
        )

    @staticmethod
    def read(folder: Path) -> Spec:
        """Read `spec.json` in a folder."""
        return Spec.from_json(json.loads((folder / "spec.json").read_text(encoding="utf-8")))


def form_of(tensor: Tensor) -> Form:
    """Return the form of a tensor."""
    return tuple(tensor.shape), tensor.stride(), str(tensor.dtype), tensor.device.type


def gpu_of(device: torch.device) -> str:
    """Return the compute capability of a device, empty for the CPU."""
    if device.type != "cuda":
        return ""
    major, minor = torch.cuda.get_device_capability(device)
    return f"{major}.{minor}"


def versions() -> tuple[str, str]:
    """Return the versions of torch and of Triton, empty where there is none."""
    try:
        triton = version("triton")
    except PackageNotFoundError:
        triton = ""
    return torch.__version__, triton


def _form(data: Any) -> Form:
    shape, stride, dtype, device = data
    return tuple(shape), tuple(stride), dtype, device
