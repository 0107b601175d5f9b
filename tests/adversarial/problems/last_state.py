"""An LSTM whose last state is classified."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs=64, hidden=128, classes=10):
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, num_layers=2, batch_first=True)
        self.fc = nn.Linear(hidden, classes)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1])


def get_inputs():
    return [torch.randn(4, 512, 64)]
