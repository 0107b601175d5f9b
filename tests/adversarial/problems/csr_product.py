"""A product of a sparse matrix in CSR form and a dense one."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, values, indptr, indices, dense):
        rows = torch.repeat_interleave(
            torch.arange(len(indptr) - 1, device=indptr.device),
            indptr.diff(),
            output_size=len(values),
        )
        out = torch.zeros(len(indptr) - 1, dense.shape[1], dtype=dense.dtype, device=dense.device)
        return out.index_add(0, rows, values[:, None] * dense[indices])


def get_inputs():
    ends = torch.randint(0, 4097, (127,)).sort().values
    indptr = torch.cat([torch.zeros(1, dtype=torch.long), ends, torch.tensor([4096])])
    return [torch.randn(4096), indptr, torch.randint(0, 256, (4096,)), torch.randn(256, 32)]
