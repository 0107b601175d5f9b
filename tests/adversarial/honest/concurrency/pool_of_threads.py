"""Keeps a pool of idle threads, and waits for all that it gave them before it returns.

problem: softmax
devices: cpu
"""

from concurrent.futures import ThreadPoolExecutor, wait

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="rows")

    def forward(self, x):
        out = torch.empty_like(x)
        work = [
            self.pool.submit(torch.softmax, rows, -1, out=into)
            for rows, into in zip(x.chunk(2), out.chunk(2), strict=True)
        ]
        for done in wait(work).done:
            done.result()
        return out
