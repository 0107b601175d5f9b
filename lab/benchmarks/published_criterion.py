"""The correctness criterion that published kernel searches use: five inputs, 5e-2.

A job for a worker (`adaexplore.sandbox.jobs`): it runs the candidate beside the reference in one
process, which is what the criterion does, and what the evaluator never would.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

SEED = 42
TRIALS = 5
TOLERANCE = 5e-2


def judge(request: dict[str, Any]) -> dict[str, Any]:
    """{"reference", "candidate", "device"} to {"passes", "why"}; `why` is one line.

    Both models are built under one seed; each trial draws its inputs under a seed of its own and
    asks for `torch.allclose` with `atol = rtol = 5e-2` against eager fp32 without TF32.
    """
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    device = request["device"]
    try:
        with torch.no_grad():
            why = _first_difference(request["reference"], request["candidate"], device)
    except Exception as error:  # noqa: BLE001 - whatever a candidate raises fails it
        why = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    return {"passes": not why, "why": why}


def _first_difference(reference_source: str, candidate_source: str, device: str) -> str:
    reference = _module("published_reference", reference_source)
    candidate = _module("published_candidate", candidate_source)
    init = [_moved(value, device) for value in reference.get_init_inputs()]
    models = []
    for kind in (reference.Model, candidate.ModelNew):
        torch.manual_seed(SEED)
        models.append(kind(*init).to(device))
    torch.manual_seed(SEED)
    seeds = [int(torch.randint(0, 2**32 - 1, (1,))) for _ in range(TRIALS)]
    for seed in seeds:
        torch.manual_seed(seed)
        inputs = [_moved(value, device) for value in reference.get_inputs()]
        inputs = [x.float() if isinstance(x, torch.Tensor) else x for x in inputs]
        expected, got = (model(*inputs) for model in models)
        if expected.shape != got.shape:
            return f"shape {tuple(got.shape)} instead of {tuple(expected.shape)}"
        if not torch.allclose(expected, got, atol=TOLERANCE, rtol=TOLERANCE):
            return f"off by {float((expected - got).abs().max()):.3g} at most"
    return ""


def _module(name: str, source: str) -> ModuleType:
    """Import a source from a file, where Triton looks for it."""
    file = Path.cwd() / f"{name}.py"
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def _moved(value: Any, device: str) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value
