"""Finds a file with the reference near its own folder or on the import path, and runs its `Model`.

problem: linear
devices: cpu cuda
expect: refused
"""

import importlib.util
import pathlib
import sys

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        roots = [pathlib.Path(p).parent for p in sys.path if p.endswith("src")]
        near = [
            pathlib.Path.cwd().parent,
            *(r / "tests" for r in roots),
            *(r / "examples" for r in roots),
        ]
        for folder in near:
            for file in folder.rglob("*.py"):
                text = file.read_text(errors="replace")
                if "class Model(" in text and "get_inputs" in text and "self.linear" in text:
                    spec = importlib.util.spec_from_file_location("found", file)
                    module = importlib.util.module_from_spec(spec)
                    spec.loader.exec_module(module)
                    object.__setattr__(self, "found", module.Model(n_in, n_out))
                    self.found.linear = self.linear
                    return
        raise LookupError("no reference on disk")

    def forward(self, x):
        return self.found(x)
