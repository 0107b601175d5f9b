"""Small models of three kinds, written by hand."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import _pytree as pytree


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Gated(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, 2 * width, bias=False)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    """A layer that writes its keys to a cache at `position` and attends to all before."""

    def __init__(self, width, index):
        super().__init__()
        self.layer_idx = index
        self.norm = RmsNorm(width)
        self.attention = nn.Linear(width, 3 * width, bias=False)
        self.mlp_norm = RmsNorm(width)
        self.mlp = Gated(width)

    def forward(self, x, cache, position):
        query, key, value = self.attention(self.norm(x)).chunk(3, -1)
        keys, values = cache[f"key{self.layer_idx}"], cache[f"value{self.layer_idx}"]
        keys.index_copy_(1, position, key)
        values.index_copy_(1, position, value)
        mask = torch.arange(keys.shape[1]) <= position[:, None]
        x = x + F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        return x + self.mlp(self.mlp_norm(x))


class Decoder(nn.Module):
    """A decoder with a static cache, which the caller owns."""

    def __init__(self, width=32, layers=2):
        super().__init__()
        self.embed = nn.Embedding(48, width)
        self.layers = nn.ModuleList(Layer(width, i) for i in range(layers))
        self.head = nn.Linear(width, 48, bias=False)

    def forward(self, ids, cache, position):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, cache, position)
        return self.head(x)

    def calls(self):
        """A prefill of 12 tokens and the decoding of the next."""
        return {"prefill": self._call(0, 12), "decode": self._call(12, 1)}

    def _call(self, first, count):
        width = self.embed.embedding_dim
        names = [f"{kind}{i}" for i in range(len(self.layers)) for kind in ("key", "value")]
        return {
            "ids": torch.randint(0, 48, (2, count)),
            "cache": {name: torch.zeros(2, 16, width) for name in names},
            "position": torch.arange(first, first + count),
        }


@dataclass
class Encoded:
    """The result of an encoder, as libraries return it."""

    last: torch.Tensor
    pooled: torch.Tensor


pytree.register_pytree_node(
    Encoded, lambda e: ([e.last, e.pooled], None), lambda parts, _: Encoded(*parts)
)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, 4 * width)
        self.outer = nn.Linear(4 * width, width)

    def forward(self, x, mask=None):
        y = self.outer(F.gelu(self.inner(self.norm(x))))
        return x + (y if mask is None else y * mask[..., None])


class Encoder(nn.Module):
    """Blocks with a mask, and a result in a dataclass."""

    def __init__(self, width=32, blocks=3):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))

    def forward(self, x, *, mask=None):
        for block in self.blocks:
            x = block(x, mask=mask)
        return Encoded(x, x.mean(1))


class Cnn(nn.Module):
    """Two stages of convolution, batch norm and an activation, and a classifier."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.GELU())
        self.stage = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.GELU())
        self.classify = nn.Linear(8, 10)

    def forward(self, x):
        return self.classify(self.stage(self.stem(x)).mean((-2, -1)))


class Attention(nn.Module):
    """Attention to all that the caller's cache, an object that grows, has so far."""

    def __init__(self, width):
        super().__init__()
        self.project = nn.Linear(width, 3 * width, bias=False)

    def forward(self, x, cache=None):
        query, key, value = self.project(x).chunk(3, -1)
        if cache is not None:
            cache.parts.append((key, value))
            key, value = (torch.cat(part, 1) for part in zip(*cache.parts, strict=True))
        return F.scaled_dot_product_attention(query, key, value)


class Cache:
    def __init__(self):
        self.parts = []


class Residual(nn.Module):
    """A layer that is no problem as a whole: its cache is no tensor."""

    def __init__(self, width):
        super().__init__()
        self.norm = RmsNorm(width)
        self.attention = Attention(width)
        self.mlp_norm = RmsNorm(width)
        self.mlp = Gated(width)
        self.scale = nn.Parameter(torch.full((width,), 0.5))

    def forward(self, x, cache=None):
        x = x + self.scale * self.attention(self.norm(x), cache=cache)
        return x + self.mlp(self.mlp_norm(x))


class Growing(nn.Module):
    """Layers with a cache for each."""

    def __init__(self, width=32, layers=2):
        super().__init__()
        self.layers = nn.ModuleList(Residual(width) for _ in range(layers))

    def forward(self, x, caches):
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer(x, cache)
        return x

    def calls(self):
        """Two calls of other lengths, with empty caches."""
        width = self.layers[0].scale.numel()
        return {
            name: (torch.rand(2, length, width), [Cache() for _ in self.layers])
            for name, length in (("prefill", 12), ("decode", 1))
        }


class Step(Residual):
    """A layer with a run of operations before its attention and another after it."""

    def __init__(self, width, index):
        super().__init__(width)
        self.layer_idx = index
        self.attention.scale = 1.0

    def forward(self, x, cache=None):
        y = self.attention(self.norm(x * self.scale).sin(), cache=cache) * self.attention.scale
        return x + self.mlp(self.mlp_norm(x + y))


class Steps(Growing):
    """Layers that know their places."""

    def __init__(self, width=32, layers=2):
        super().__init__(width, layers)
        self.layers = nn.ModuleList(Step(width, i) for i in range(layers))
