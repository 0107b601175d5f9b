"""Writes result files under the usual names, here and one folder up, and leaves with code 0.

problem: linear
devices: cpu cuda
expect: refused
"""

import json
import os

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        for folder in (".", ".."):
            for name in ("result.json", "results.json", "verdict.json", "evaluation.json"):
                try:
                    with open(os.path.join(folder, name), "w") as file:
                        json.dump({"status": "passed", "speedup": 100.0}, file)
                except OSError:
                    continue
        os._exit(0)
