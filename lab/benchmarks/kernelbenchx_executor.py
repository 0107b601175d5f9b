"""Predictions through KernelBench-X's own scripts: call accuracy, then execution accuracy.

    adaexplore export runs/kbx --predictions predictions.jsonl
    python lab/benchmarks/kernelbenchx_executor.py KernelBenchX predictions.jsonl -o verdicts.json \
        [--python ENV/bin/python] [--on-cpu]

KernelBenchX is a clone of github.com/BonnieW05/KernelBenchX; ENV has torch, triton, numpy, tqdm and
radon. The scripts run as they are, on GPU 0. Their tests make tensors on "cuda": with --on-cpu,
PyTorch is told to make them on the CPU, for kernels that run there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ON_CPU = '''
import sys
import importlib.abc, importlib.util


class ToCpu(importlib.abc.MetaPathFinder):
    """Loads torch, and then makes every call for "cuda" one for the CPU."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def load(module):
            run(module)
            from torch.overrides import TorchFunctionMode

            class Mode(TorchFunctionMode):
                def __torch_function__(self, func, types, args=(), kwargs=None):
                    kwargs = kwargs or {}
                    if "cuda" in str(kwargs.get("device")):
                        kwargs = {**kwargs, "device": "cpu"}
                    if getattr(func, "__name__", "") == "cuda":
                        return args[0]
                    args = tuple("cpu" if isinstance(a, str) and a == "cuda" else a for a in args)
                    return func(*args, **kwargs)

            Mode().__enter__()

        spec.loader.exec_module = load
        return spec


sys.meta_path.insert(0, ToCpu())
'''


def environment(checkout: Path, folder: Path, *, on_cpu: bool) -> dict[str, str]:
    """Return the environment of the scripts."""
    paths = [str(checkout / "data")]
    if on_cpu:
        (folder / "sitecustomize.py").write_text(ON_CPU)
        paths.insert(0, str(folder))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def rows_of(files: Iterable[Path]) -> dict[str, Mapping[str, Any]]:
    """Return the rows of files of results by the name of the task."""
    lines = [line for file in files for line in file.read_text().splitlines()]
    return {Path(row["file"]).name: row for row in map(json.loads, lines)}


def run(asked: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Run both scripts; return a verdict for each prediction by its task."""
    checkout, predictions = asked.checkout.resolve(), asked.predictions.resolve()
    wanted = [json.loads(line)["file"] for line in predictions.read_text().splitlines()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = environment(checkout, folder, on_cpu=asked.on_cpu)
        called = folder / "called.jsonl"
        for script, options in (
            (
                "0_call_acc.py",
                ["--source", predictions, "--target", folder / "out", "--result_jsonl", called],
            ),
            ("1_exe_acc.py", ["--folder", folder / "out", "--result_jsonl", folder / "ran.jsonl"]),
        ):
            command = [asked.python, checkout / "EVAL" / script, *options, "--GPUs", "0"]
            done = subprocess.run(
                list(map(str, command)), env=env, cwd=folder, capture_output=True, text=True
            )
            if done.returncode:
                sys.exit(f"{script}: {done.stderr[-2000:]}")
        call, ran = rows_of([called]), rows_of(folder.glob("ran*.jsonl"))
    return {file: verdict(call.get(Path(file).name), ran.get(Path(file).name)) for file in wanted}


def verdict(call: Mapping[str, Any] | None, ran: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return whether a prediction could be called and gave the right results, and the error."""
    said = str((ran or call or {}).get("stderr", "")).strip().splitlines()
    is_right = bool(ran and ran["ok"])
    return {
        "call": bool(call and call["ok"]),
        "execution": is_right,
        "error": "" if is_right or not said else said[-1][:300],
    }


def main() -> None:
    """Run the scripts and write the verdicts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("predictions", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--on-cpu", action="store_true")
    asked = parser.parse_args()
    found = run(asked)
    for file, one in found.items():
        print(f"{file}: call {one['call']}, execution {one['execution']} {one['error']}".rstrip())
    right = sum(one["execution"] for one in found.values())
    print(f"{sum(one['call'] for one in found.values())} called, {right} right of {len(found)}")
    if asked.output:
        asked.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
