"""The judge of published kernel searches: five random inputs, 5e-2, a trimmed mean over eager fp32.

It runs in a confined worker, the candidate beside the reference in one process, as the publication
has it, and proves nothing: this package's own judge decides. Others may use the device meanwhile,
except in timings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from adaexplore.evaluate.timing.clock import timing_event
from adaexplore.sandbox.channel import Channel
from adaexplore.sandbox.user.user_code import import_file, is_out_of_memory

SEED = 42
TRIALS = 5
TOLERANCE = 5e-2
WARMUPS = 10
RUNS = 100
TRIMMED = 0.05
"""Share of the timed runs that is left out at each end."""


OUT_OF_MEMORY = {"out_of_memory": True}
"""The verdict where a GPU's memory ran out."""

Alone = Callable[[], AbstractContextManager[None]]
"""Has the device alone for a block."""


def serve(channel: Channel, control: Channel | None) -> None:  # noqa: ARG001 - worker signature
    """Receive a request of `judge`, and send its verdict; entry point of the worker.

    It begins without the device. Before and after each of the two timings it sends {"alone": True}
    or {"alone": False}, and goes on when it receives anything.
    """
    channel.send(judge(channel.receive(), partial(_alone, channel)))


@contextmanager
def _alone(channel: Channel) -> Iterator[None]:
    for alone in (True, False):
        channel.send({"alone": alone})
        channel.receive()
        if alone:
            yield


def judge(request: Mapping[str, Any], alone: Alone) -> dict[str, Any]:
    """{"reference", "candidate", "device"} to {"why", "time_us", "eager_us"}.

    `why` is one line, empty for a correct candidate; only that has times. The reference is timed
    before the candidate is imported. {} where the reference cannot be run so, and `OUT_OF_MEMORY`
    where a GPU's memory runs out: others may hold it.
    """
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    device = request["device"]
    with torch.no_grad():
        try:
            reference = _module("published_reference", request["reference"])
            init = list(getattr(reference, "get_init_inputs", list)())
            model, given = _built(reference.Model, init), _inputs(reference, SEED)
            with alone():
                model, inputs = model.to(device), _moved(given, device)
                model(*inputs)
                eager_us = _mean_us(lambda: model(*inputs), device)
        except Exception as error:  # noqa: BLE001 - the reference is the user's own code
            return OUT_OF_MEMORY if _lacks_memory(error, device) else {}
        try:
            candidate = _module("published_candidate", request["candidate"])
            own = _built(candidate.ModelNew, _moved(init, device)).to(device)
            why = _difference(reference, model, own, device)
            time_us = None
            if not why:
                with alone():
                    time_us = _mean_us(lambda: own(*inputs), device)
        except Exception as error:  # noqa: BLE001 - whatever a candidate raises fails it
            if _lacks_memory(error, device):
                return OUT_OF_MEMORY
            why = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
            time_us = None
    return {"why": why, "time_us": time_us, "eager_us": eager_us}


def _lacks_memory(error: Exception, device: str) -> bool:
    return device != "cpu" and is_out_of_memory(error)


def trimmed_mean(times: list[float]) -> float:
    """Return the mean without the 5 % smallest and the 5 % largest."""
    cut = int(TRIMMED * len(times))
    kept = sorted(times)[cut : len(times) - cut]
    return sum(kept) / len(kept)


def _difference(reference: ModuleType, model: Any, own: Any, device: str) -> str:
    """Return the first difference of the outputs in one line; empty for none."""
    torch.manual_seed(SEED)
    for seed in [int(torch.randint(0, 2**32 - 1, (1,))) for _ in range(TRIALS)]:
        inputs = _moved(_inputs(reference, seed), device)
        expected, got = model(*inputs), own(*inputs)
        if expected.shape != got.shape:
            return f"shape {tuple(got.shape)} instead of {tuple(expected.shape)}"
        if not torch.allclose(expected, got, atol=TOLERANCE, rtol=TOLERANCE):
            return f"off by {float((expected - got).abs().max()):.3g} at most"
    return ""


def _mean_us(call: Callable[[], object], device: str) -> float:
    for _ in range(WARMUPS):
        call()
    return trimmed_mean([_time_us(call, device) for _ in range(RUNS)])


def _time_us(call: Callable[[], object], device: str) -> float:
    if device == "cpu":
        began = time.perf_counter()
        call()
        return 1e6 * (time.perf_counter() - began)
    start, end = timing_event(), timing_event()
    torch.cuda.synchronize()
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return 1e3 * float(start.elapsed_time(end))


def _built(kind: Any, init: list[Any]) -> Any:
    torch.manual_seed(SEED)
    return kind(*init)


def _inputs(reference: ModuleType, seed: int) -> list[Any]:
    torch.manual_seed(seed)
    return list(reference.get_inputs())


def _moved(values: list[Any], device: str) -> list[Any]:
    """Return the values on a device, floating-point tensors as float32."""
    found = [v.to(device) if isinstance(v, torch.Tensor) else v for v in values]
    return [
        v.float() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in found
    ]


def _module(name: str, source: str) -> ModuleType:
    """Import a source from a file, where Triton looks for it."""
    file = Path.cwd() / f"{name}.py"
    file.write_text(source, encoding="utf-8")
    return import_file(name, file)
