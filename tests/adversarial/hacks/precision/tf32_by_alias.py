"""The same through `setattr`, a name in pieces, and put back afterwards.

problem: matmul
devices: cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def work(self, a, b):
        return a @ b

    def forward(self, a, b):
        switch = getattr(torch, "_".join(("set", "float32", "matmul", "precision")))
        switch("medium")
        try:
            return self.work(a, b)
        finally:
            switch("highest")
