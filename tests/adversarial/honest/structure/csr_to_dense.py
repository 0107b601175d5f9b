"""Makes the sparse matrix dense, where one number may stand several times in a row.

problem: csr_product
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, values, indptr, indices, dense):
        rows, columns = len(indptr) - 1, dense.shape[0]
        row = torch.searchsorted(indptr, torch.arange(len(values)), right=True) - 1
        matrix = torch.zeros(rows * columns).index_add_(0, row * columns + indices, values)
        return matrix.view(rows, columns) @ dense
