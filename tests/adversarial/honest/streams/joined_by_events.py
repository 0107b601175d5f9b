"""A stream of high priority, joined by an event in each call.

problem: linear
devices: cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.stream = torch.cuda.Stream(priority=-1)

    def forward(self, x):
        current = torch.cuda.current_stream()
        self.stream.wait_event(current.record_event())
        with torch.cuda.stream(self.stream):
            y = torch.relu(self.linear(x))
            done = self.stream.record_event()
        current.wait_event(done)
        x.record_stream(self.stream)
        y.record_stream(current)
        return y
