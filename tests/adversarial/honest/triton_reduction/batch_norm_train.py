"""Two kernels: statistics of each channel, which also update the running ones, and the result.

problem: batch_norm_train
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def statistics_kernel(
    x_ptr, mean_ptr, scale_ptr, running_mean_ptr, running_var_ptr, batch, channels, pixels,
    momentum, eps, BLOCK: tl.constexpr,
):  # fmt: skip
    channel = tl.program_id(0)
    count = batch * pixels
    at = tl.arange(0, BLOCK)
    here = ((at // pixels) * channels + channel) * pixels + at % pixels
    x = tl.load(x_ptr + here, mask=at < count, other=0.0)
    mean = tl.sum(x, axis=0) / count
    centred = tl.where(at < count, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / count
    tl.store(mean_ptr + channel, mean)
    tl.store(scale_ptr + channel, tl.rsqrt(variance + eps))
    old = tl.load(running_mean_ptr + channel)
    tl.store(running_mean_ptr + channel, old + momentum * (mean - old))
    old = tl.load(running_var_ptr + channel)
    unbiased = variance * (count / (count - 1.0))
    tl.store(running_var_ptr + channel, old + momentum * (unbiased - old))


@triton.jit
def normalize_kernel(
    x_ptr, mean_ptr, scale_ptr, w_ptr, b_ptr, out_ptr, channels, pixels, BLOCK: tl.constexpr
):
    plane = tl.program_id(0)
    channel = plane % channels
    mean = tl.load(mean_ptr + channel)
    scale = tl.load(scale_ptr + channel) * tl.load(w_ptr + channel)
    shift = tl.load(b_ptr + channel)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + plane * pixels + at, mask=at < pixels, other=0.0)
    tl.store(out_ptr + plane * pixels + at, (x - mean) * scale + shift, mask=at < pixels)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.1)

    def forward(self, x):
        x, norm = x.contiguous(), self.norm
        batch, channels = x.shape[:2]
        pixels = x.shape[2] * x.shape[3]
        mean, scale = torch.empty(2, channels, dtype=x.dtype, device=x.device)
        out = torch.empty_like(x)
        statistics_kernel[(channels,)](
            x, mean, scale, norm.running_mean, norm.running_var, batch, channels, pixels,
            norm.momentum, norm.eps, BLOCK=triton.next_power_of_2(batch * pixels),
        )  # fmt: skip
        norm.num_batches_tracked += 1
        normalize_kernel[(batch * channels,)](
            x, mean, scale, norm.weight, norm.bias, out, channels, pixels,
            BLOCK=triton.next_power_of_2(pixels),
        )  # fmt: skip
        return out
