"""Takes all rows of a sparse matrix for equally long, and looks at no offset.

problem: csr_product
devices: cpu
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, values, indptr, indices, dense):
        rows = len(indptr) - 1
        terms = values[:, None] * dense[indices]
        return terms.view(rows, -1, dense.shape[1]).sum(1)
