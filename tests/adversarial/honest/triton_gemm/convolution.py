"""A convolution as a product whose columns are gathered on the way, with BatchNorm folded in.

problem: conv
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def conv_kernel(
    x_ptr, w_ptr, scale_ptr, shift_ptr, out_ptr, channels, height, width, outputs, total,
    BP: tl.constexpr, BO: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    pixel = tl.program_id(0) * BP + tl.arange(0, BP)
    output = tl.program_id(1) * BO + tl.arange(0, BO)
    image, place = pixel // (height * width), pixel % (height * width)
    y, x = place // width, place % width
    inner = channels * 9
    acc = tl.zeros((BO, BP), dtype=tl.float32)
    for start in range(0, inner, BK):
        k = start + tl.arange(0, BK)
        channel, tap = k // 9, k % 9
        row = y[None, :] + (tap // 3)[:, None] - 1
        column = x[None, :] + (tap % 3)[:, None] - 1
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        inside = inside & (pixel[None, :] < total) & (k[:, None] < inner)
        plane = image[None, :] * channels + channel[:, None]
        data = tl.load(x_ptr + (plane * height + row) * width + column, mask=inside, other=0.0)
        w_mask = (output[:, None] < outputs) & (k[None, :] < inner)
        w = tl.load(w_ptr + output[:, None] * inner + k[None, :], mask=w_mask, other=0.0)
        acc = tl.dot(w, data, acc, input_precision="ieee")
    known = output < outputs
    acc = acc * tl.load(scale_ptr + output, mask=known, other=0.0)[:, None]
    acc = acc + tl.load(shift_ptr + output, mask=known, other=0.0)[:, None]
    there = (image[None, :] * outputs + output[:, None]) * (height * width) + place[None, :]
    mask = (pixel[None, :] < total) & known[:, None]
    tl.store(out_ptr + there, tl.maximum(acc, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(n_out)
        nn.init.normal_(self.norm.running_mean, std=0.2)
        nn.init.uniform_(self.norm.running_var, 0.5, 1.5)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.1)
        nn.init.normal_(self.norm.bias, std=0.1)
        self.eval()

    def forward(self, x):
        x, norm = x.contiguous(), self.norm
        scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
        shift = norm.bias - norm.running_mean * scale
        n, channels, height, width = x.shape
        outputs, total = self.conv.out_channels, n * height * width
        out = torch.empty(n, outputs, height, width, dtype=x.dtype, device=x.device)
        grid = (triton.cdiv(total, 64), triton.cdiv(outputs, 32))
        conv_kernel[grid](
            x, self.conv.weight, scale, shift, out, channels, height, width, outputs, total,
            BP=64, BO=32, BK=32,
        )  # fmt: skip
        return out
