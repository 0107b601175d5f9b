"""Folders as the published search writes them, with texts of our own."""

import json
from pathlib import Path

REFERENCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
"""
GPU = "NVIDIA Imaginary"


def kernel(number: int) -> str:
    return f"from torch import nn\n\n\nclass ModelNew(nn.Module):\n    number = {number}\n"


def right(speedup: float, time_ms: float = 2.0) -> dict:
    stats = {"mean": time_ms, "hardware": GPU, "device": "0", "fast_p": speedup}
    stats |= {"baseline_time": speedup * time_ms, "baseline_type": "recorded"}
    return {
        "compiled": True,
        "correctness": True,
        "metadata": {"hardware": GPU, "device": "0", "correctness_trials": "(5 / 5)"},
        "runtime": time_ms,
        "runtime_stats": stats,
    }


def wrong(compiled: bool = True, **metadata: object) -> dict:
    return {
        "compiled": compiled,
        "correctness": False,
        "metadata": {"hardware": GPU, **metadata},
        "runtime": -1.0,
        "runtime_stats": {},
    }


TRITON = wrong(
    runtime_error_name="triton.compiler.errors.CompilationError",
    runtime_error="Traceback (most recent call last):\n  File ...\n"
    "triton.compiler.errors.CompilationError: at 3:8:\n    y = tl.log1p(x)\n        ^\n"
    "module 'triton.language' has no attribute 'log1p'\n",
)
UNIMPORTABLE = wrong(
    compiled=False,
    compilation_error_name="builtins.NameError",
    compilation_error="Traceback ...\nNameError: name 'triton' is not defined\n",
)
MISMATCH = wrong(max_difference=["3.250000"], correctness_issue="Output mismatch")


def write_tree(folder: Path, options: str = "") -> Path:
    """A run of five steps: right, Triton's error, wrong, faster, a file that cannot be imported."""
    folder.mkdir(parents=True)
    (folder / "reference_src.py").write_text(REFERENCE)
    if options:
        (folder.parent / "config.yaml").write_text(options)
    write_step(folder, 0, None, "dummy_root", "", wrong(compiled=False))
    write_step(folder, 1, 0, "large_step", kernel(1), right(1.5))
    write_step(folder, 2, 1, "small_step", kernel(2), TRITON)
    write_step(folder, 3, 1, "small_step", kernel(3), MISMATCH)
    write_step(folder, 4, 1, "large_step", kernel(4), right(2.5, 1.2))
    write_step(folder, 5, 0, "large_step", kernel(5), UNIMPORTABLE)
    (folder / "step_2_prompt.txt").write_text("change the kernel, please")
    (folder / "global_best_kernel_5.py").write_text(kernel(4))
    return folder


def write_step(folder: Path, number: int, parent, kind: str, source: str, metrics: dict) -> None:
    log = {"node_id": number, "parent_node_id": parent, "created_by": kind, "visits": 1}
    (folder / f"step_{number}.py").write_text(source)
    (folder / f"step_{number}_log.json").write_text(json.dumps(log))
    (folder / f"step_{number}_metrics.json").write_text(json.dumps(metrics))


def write_loop(folder: Path, name: str, source: str, metrics: dict) -> None:
    """A step of a baseline, with its metrics printed as older runs have them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(source)
    printed = " ".join(f"{key}={value!r}" for key, value in metrics.items())
    (folder / f"{name}_metrics.txt").write_text(printed)


def write_released(folder: Path, kernels: dict[int, dict]) -> Path:
    """Released kernels of level 2 below a checkout that has problem 18."""
    level = folder / "results" / "saved_kernels" / "kernelbench" / "level2"
    level.mkdir(parents=True)
    problems = folder / "datasets" / "KernelBench" / "level2"
    problems.mkdir(parents=True)
    (problems / "18_Relu.py").write_text(REFERENCE)
    measured = {str(n): {"recorded_baseline": metrics} for n, metrics in kernels.items()}
    (level.parent / "metrics_level2.json").write_text(json.dumps({"problems": measured}))
    for number in kernels:
        (level / f"{number}.py").write_text(kernel(number))
    return level
