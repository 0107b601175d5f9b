"""A dataset of one definition with two workloads, in the layouts of both benchmarks."""

import json
from pathlib import Path

NAME = "scaled_add_d4"
SHORT, LONG = "7c9e6679 rows=2", "16fd2706 rows=300"
"""The names of the workloads."""
KERNEL = """
import torch


class ModelNew(torch.nn.Module):
    made = 0

    def __init__(self):
        super().__init__()
        ModelNew.made += 1
        self.zero = torch.zeros(())  # no buffer: it stays where it was made

    def forward(self, scale, x, y):
        return x + scale * y + self.zero, x.shape[0] * torch.ones((), dtype=torch.int64)
"""
REFERENCE = """
import torch

def run(scale, x, y):
    return x + scale * y, x.shape[0] * torch.ones((), dtype=torch.int64, device=x.device)
"""
STORED = (
    "draw_inputs(rows=300, y=stored('/data/blob/y.safetensors', 0, 9, torch.float32, (300, 4)))"
)
"""The expression of the workload `LONG` where its file is there."""
DEFINITION = {
    "name": NAME,
    "op_type": "elementwise",
    "axes": {"rows": {"type": "var"}, "d": {"type": "const", "value": 4}},
    "inputs": {
        "scale": {"shape": None, "dtype": "float32"},
        "x": {"shape": ["rows", "d"], "dtype": "float32"},
        "y": {"shape": ["rows", "d"], "dtype": "float32"},
    },
    "outputs": {
        "sum": {"shape": ["rows", "d"], "dtype": "float32"},
        "rows_out": {"shape": [], "dtype": "int64"},
    },
    "reference": REFERENCE,
}


def workloads() -> list[dict]:
    given = {"scale": {"type": "scalar", "value": 0.5}, "x": {"type": "random"}}
    stored = {"type": "safetensors", "path": "blob/y.safetensors", "tensor_key": "y"}
    return [
        {
            "uuid": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
            "axes": {"rows": 2},
            "inputs": {**given, "y": {"type": "random"}},
        },
        {
            "uuid": "16fd2706-8baf-433b-82eb-8c7fada847da",
            "axes": {"rows": 300},
            "inputs": {**given, "y": stored},
        },
    ]


def write_flashinfer(folder: Path) -> Path:
    """Write the layout of FlashInfer-Bench: workloads are traces without an evaluation."""
    file = folder / "definitions" / "elementwise" / f"{NAME}.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(DEFINITION))
    file = folder / "workloads" / "elementwise" / f"{NAME}.jsonl"
    file.parent.mkdir(parents=True)
    lines = [
        json.dumps({"definition": NAME, "solution": None, "workload": each, "evaluation": None})
        for each in workloads()
    ]
    file.write_text("\n".join(lines) + "\n")
    return folder


def write_sol(folder: Path) -> Path:
    """Write the layout of SOL-ExecBench: a folder for each task."""
    task = folder / NAME
    task.mkdir(parents=True)
    task.joinpath("definition.json").write_text(
        json.dumps({key: value for key, value in DEFINITION.items() if key != "op_type"})
    )
    tolerance = {"max_atol": 1e-3, "allow_negative_inf": True}
    lines = [json.dumps(each | {"tolerance": tolerance}) for each in workloads()]
    task.joinpath("workload.jsonl").write_text("\n".join(lines) + "\n")
    return folder
