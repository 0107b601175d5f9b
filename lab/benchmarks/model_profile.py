"""Where the time of a model's call goes, in eager mode and in CUDA graphs, on an idle GPU.

    python lab/benchmarks/model_profile.py examples/models/vit.py make

For each way: the times of single calls, the mean of calls in a row, and the kernels that take
longest. The first graph is captured as `torch.cuda.graph` does it. The second has the operations of
eager mode: what asks whether it is captured is told no.
"""

from __future__ import annotations

import argparse
import copy
import runpy
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch.profiler import ProfilerActivity, profile

TIMES = 30
KERNELS = 9


def main() -> None:
    """Profile each call of the model in each way."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("script", type=Path, help="a file as for adaexplore model")
    parser.add_argument("function", help="its function that makes the model and its calls")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(options.script.parent))
    model, calls = runpy.run_path(str(options.script))[options.function]()
    for name, call in calls.items():

        def run(given: Any) -> Any:
            return model(**given) if isinstance(given, dict) else model(*given)

        with torch.no_grad():
            show(f"{name}, eager", partial(run, copy.deepcopy(call)))
            show(f"{name}, captured", captured(partial(run, copy.deepcopy(call))))
            try:
                with patch("torch.cuda.is_current_stream_capturing", lambda: False):
                    graph = captured(partial(run, copy.deepcopy(call)))
            except RuntimeError as error:
                print(f"{name}: not captured as eager: {error}")
            else:
                show(f"{name}, captured as eager", graph)


def captured(run: Callable[[], Any]) -> Callable[[], Any]:
    """Return the replay of a capture."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def show(name: str, run: Callable[[], Any]) -> None:
    """Print times in ms, and kernels."""
    run()
    singles = []
    for _ in range(TIMES):
        torch.cuda.synchronize()
        began = time.perf_counter()
        run()
        torch.cuda.synchronize()
        singles.append(1e3 * (time.perf_counter() - began))
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(TIMES):
        run()
    torch.cuda.synchronize()
    mean = 1e3 * (time.perf_counter() - began) / TIMES
    singles.sort()
    print(
        f"{name}: a call {singles[TIMES // 2]:.2f} ({singles[0]:.2f} to {singles[-1]:.2f}), ",
        end="",
    )
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        run()
        torch.cuda.synchronize()
    rows = sorted(profiled.key_averages(), key=lambda row: -row.self_device_time_total)
    total = sum(row.self_device_time_total for row in rows) / 1e3
    print(f"in a row {mean:.2f}, kernels {total:.2f} ms")
    for row in rows[:KERNELS]:
        print(f"  {row.self_device_time_total / 1e3:8.3f} ms {row.count:5d} {row.key[:100]}")


if __name__ == "__main__":
    main()
