"""Training steps timed without the judge: a kernel beside the compiled reference, by CUDA events.

    python lab/benchmarks/step_times.py examples/training/*.py --kernels examples/training/kernels

For each module, forward and gradients of both in turns, with the L2 cache overwritten before each
step. "queued": the GPU is kept busy until the whole step is enqueued, so its own time counts.
"waiting": the GPU is idle when the step begins, as in a loop that reads a result after each step,
so the time of launching counts too. The interval is that of a bootstrap over the pairs.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import statistics
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

_ROUNDS = 100
_WARM = 30
_RESAMPLES = 2000
_BUSY_CYCLES = 3_000_000  # 1.5 ms: no step of the examples takes longer to enqueue
_L2_BYTES = 256 << 20
Step = Callable[[], object]


def main() -> None:
    """Print a line for each module, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="+", type=Path)
    parser.add_argument("--kernels", type=Path, required=True, help="a folder of the same names")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = {}
    for file in options.modules:
        found[file.stem] = compared(file, options.kernels / file.name)
        for mode, row in found[file.stem].items():
            low, high = row["speedup_ci"]
            print(
                f"{file.stem}, {mode}: {row['reference_us']:.1f} µs compiled, "
                f"{row['kernel_us']:.1f} µs, {row['speedup']:.3f}x ({low:.3f} to {high:.3f})",
                flush=True,
            )
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def compared(reference: Path, kernel: Path) -> dict[str, dict[str, Any]]:
    """Return times and their ratio by mode, of the compiled reference and of a kernel."""
    module, own = _module(reference), _module(kernel)
    torch.manual_seed(0)
    init: list[Any] = getattr(module, "get_init_inputs", list)()
    model, other = module.Model(*init).cuda(), own.ModelNew(*init).cuda()
    other.load_state_dict(model.state_dict())
    given = [value.cuda() if torch.is_tensor(value) else value for value in module.get_inputs()]
    steps = [_step(torch.compile(model), model, given), _step(other, other, given)]
    for step in steps:
        for _ in range(_WARM):
            step()
    return {mode: _times(steps, is_queued=mode == "queued") for mode in ("queued", "waiting")}


def _step(call: Callable[..., Any], model: torch.nn.Module, given: list[Any]) -> Step:
    leaves = [
        value.detach().requires_grad_()
        if torch.is_tensor(value) and value.is_floating_point()
        else value
        for value in given
    ]
    asked = [v for v in leaves if torch.is_tensor(v) and v.requires_grad] + [*model.parameters()]
    outputs = _tensors(call(*leaves))
    along = [torch.randn_like(out) for out in outputs]

    def step() -> object:
        return torch.autograd.grad(_tensors(call(*leaves)), asked, along)

    return step


def _tensors(outputs: Any) -> list[torch.Tensor]:
    return [outputs] if torch.is_tensor(outputs) else list(outputs)


def _times(steps: list[Step], *, is_queued: bool) -> dict[str, Any]:
    flush = torch.empty(_L2_BYTES, dtype=torch.uint8, device="cuda")
    pairs = [[_time_us(step, flush, is_queued=is_queued) for step in steps] for _ in range(_ROUNDS)]
    drawn = random.Random(0)
    ratios = sorted(_ratio(drawn.choices(pairs, k=_ROUNDS)) for _ in range(_RESAMPLES))
    first, second = map(statistics.median, zip(*pairs, strict=True))
    return {
        "reference_us": first,
        "kernel_us": second,
        "speedup": first / second,
        "speedup_ci": [ratios[int(0.025 * _RESAMPLES)], ratios[int(0.975 * _RESAMPLES)]],
    }


def _ratio(pairs: list[list[float]]) -> float:
    first, second = map(statistics.median, zip(*pairs, strict=True))
    return float(first / second)


def _time_us(step: Step, flush: torch.Tensor, *, is_queued: bool) -> float:
    start, end = _event(), _event()
    flush.zero_()
    if is_queued:
        torch.cuda._sleep(_BUSY_CYCLES)  # type: ignore[no-untyped-call]
    else:
        torch.cuda.synchronize()
    start.record()
    step()
    end.record()
    torch.cuda.synchronize()
    return 1e3 * float(start.elapsed_time(end))


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _module(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{file.parent.name}_{file.stem}", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
