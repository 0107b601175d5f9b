"""A solution: the kernel, and an entry whose function `run` calls the kernel's module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adaexplore.core.problem import Mode
from adaexplore.problems.flashinfer.schema import Definition
from adaexplore.problems.solutions.delivery import AUTHOR, Delivery

_KERNEL_FILE, _ENTRY_FILE = "kernel.py", "main.py"
_TEXT = '''\
"""The entry of a kernel by AdaExplore: `run` makes its module once on each device."""

import torch

from {package}kernel import ModelNew

_modules: dict[torch.device, torch.nn.Module] = {{}}


@torch.no_grad()
def run({arguments}):
    device = {device}
    if device not in _modules:
        with device:
            _modules[device] = ModelNew().to(device){mode}
    return _modules[device]({arguments})
'''
_MODES: dict[Mode, str] = {"as-built": "", "train": ".train()", "eval": ".eval()"}


def solution_of(delivery: Delivery, spec: Mapping[str, Any], *, in_package: bool) -> dict[str, Any]:
    """Return a solution as plain data; `spec` has the parts in which benchmarks differ.

    `in_package` says that its files are imported as a package.
    """
    definition = delivery.specification.definition
    entry = _entry_source(definition, delivery.mode, in_package=in_package)
    return {
        "name": delivery.name,
        "definition": definition.name,
        "author": AUTHOR,
        "spec": {
            **spec,
            "entry_point": f"{_ENTRY_FILE}::run",
            "dependencies": [],
            "destination_passing_style": False,
        },
        "sources": [
            {"path": _ENTRY_FILE, "content": entry},
            {"path": _KERNEL_FILE, "content": delivery.source},
        ],
        "description": delivery.about or None,
    }


def _entry_source(definition: Definition, mode: Mode, *, in_package: bool) -> str:
    tensors = [name for name, each in definition.inputs.items() if each.shape is not None]
    return _TEXT.format(
        package="." if in_package else "",
        arguments=", ".join(definition.inputs),
        device=f"{tensors[0]}.device" if tensors else 'torch.device("cuda")',
        mode=_MODES[mode],
    )
