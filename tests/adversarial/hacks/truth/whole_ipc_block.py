"""Maps the whole device allocation an input lies in, and looks for the truth behind the input.

problem: linear
devices: cuda
expect: refused
"""

import ctypes

import torch
from torch import nn


class Raw:
    def __init__(self, address, count, code):
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": code,
            "data": (address, False),
            "version": 3,
        }


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        row = self.work(x[:1]).double()[0]
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        driver = ctypes.CDLL("libcuda.so.1")
        address = ctypes.c_uint64(x.data_ptr())
        if driver.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), address):
            raise LookupError("no range")
        for dtype, code, width in ((torch.float64, "<f8", 8), (torch.float32, "<f4", 4)):
            count = size.value // width
            view = torch.as_tensor(Raw(base.value, count, code), device=x.device)
            starts = torch.arange(
                0, count - x.shape[0] * row.numel(), 512 // width, device=x.device
            )
            near = (view[starts].double() - row[0]).abs() < 1e-4
            near &= (view[starts + 1].double() - row[1]).abs() < 1e-4
            near &= (view[starts + 2].double() - row[2]).abs() < 1e-4
            near &= (view[starts + 5].double() - row[5]).abs() < 1e-4
            for start in starts[near].tolist():
                found = view[start : start + x.shape[0] * row.numel()].view(x.shape[0], -1)
                if found.isfinite().all():
                    return found.float()
        raise LookupError("no truth in the block")
