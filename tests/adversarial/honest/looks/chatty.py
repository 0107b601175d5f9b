"""Prints, logs and warns: at import, in the constructor and in each call.

problem: linear
devices: cpu cuda
"""

import json
import logging
import sys
import warnings

import torch
from torch import nn

logging.basicConfig(level=logging.INFO)
log = logging.getLogger(__name__)
print("loading the fast linear layer")
warnings.warn("this kernel is written for 512 columns", stacklevel=1)


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        log.info("weights of shape %s", tuple(self.linear.weight.shape))

    def forward(self, x):
        print(json.dumps({"rows": x.shape[0], "status": "computing"}))
        sys.stderr.write("rows\n")
        return torch.relu(self.linear(x))
