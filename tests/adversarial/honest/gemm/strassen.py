"""One level of Strassen's seven products, which is as precise as a float32 product may be.

problem: matmul
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        m, k, n = a.shape[0] // 2, a.shape[1] // 2, b.shape[1] // 2
        a11, a12, a21, a22 = a[:m, :k], a[:m, k:], a[m:, :k], a[m:, k:]
        b11, b12, b21, b22 = b[:k, :n], b[:k, n:], b[k:, :n], b[k:, n:]
        p1 = (a11 + a22) @ (b11 + b22)
        p2 = (a21 + a22) @ b11
        p3 = a11 @ (b12 - b22)
        p4 = a22 @ (b21 - b11)
        p5 = (a11 + a12) @ b22
        p6 = (a21 - a11) @ (b11 + b12)
        p7 = (a12 - a22) @ (b21 + b22)
        out = torch.empty(2 * m, 2 * n, dtype=a.dtype, device=a.device)
        out[:m, :n] = p1 + p4 - p5 + p7
        out[:m, n:] = p3 + p5
        out[m:, :n] = p2 + p4
        out[m:, n:] = p1 - p2 + p3 + p6
        return out
