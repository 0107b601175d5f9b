"""Tensors that two processes see: memory files on the CPU, CUDA IPC on a GPU.

Sharing goes one way only: the judge shares, a candidate's process opens. What is opened may hold
pickled data, so a candidate's process never shares anything with the judge.
"""

from __future__ import annotations

import base64
import mmap
import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.multiprocessing.reductions import reduce_tensor

_CHUNK_WORDS = 1 << 24


@dataclass(frozen=True)
class SharedTensor:
    """A tensor in shared memory, with what another process needs to open it.

    On the CPU `fds` holds the memory file's descriptor, to be sent beside `handle`.
    """

    tensor: torch.Tensor
    handle: dict[str, Any]
    fds: tuple[int, ...] = ()

    def fill(self, source: torch.Tensor) -> None:
        """Takes over the content of `source`, which has the same shape, strides and dtype."""
        if source.numel() > 0:  # memory to memory: elements of an expanded tensor share theirs
            _flat(self.tensor).copy_(_flat(source))

    def close(self) -> None:
        """Closes the descriptor; the memory lives on while somebody maps it."""
        for fd in self.fds:
            os.close(fd)


def share(tensor: torch.Tensor) -> SharedTensor:
    """A copy of `tensor` in shared memory, with the same shape, strides and dtype."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    shape, strides = list(tensor.shape), list(tensor.stride())
    handle = {"shape": shape, "strides": strides, "dtype": str(tensor.dtype).partition(".")[2]}
    if tensor.numel() == 0:
        return SharedTensor(
            tensor.clone(), handle | {"kind": "empty", "device": str(tensor.device)}
        )
    elements = _flat(tensor).numel()
    if tensor.is_cuda:
        memory = torch.empty(elements, dtype=tensor.dtype, device=tensor.device)
        reduced = base64.b64encode(pickle.dumps(_reduce(memory))).decode()
        copy = memory.as_strided(shape, strides)
        shared = SharedTensor(copy, handle | {"kind": "cuda", "ipc": reduced})
    else:
        fd = os.memfd_create("adaexplore-tensor", os.MFD_CLOEXEC)
        os.ftruncate(fd, elements * tensor.element_size())
        copy = _map(fd, elements, tensor.dtype).as_strided(shape, strides)
        shared = SharedTensor(copy, handle | {"kind": "cpu", "elements": elements}, (fd,))
    shared.fill(tensor)
    return shared


def open_shared(handles: Sequence[dict[str, Any]], fds: Sequence[int]) -> list[torch.Tensor]:
    """The tensors behind `handles`; takes over `fds`, one for each handle of kind "cpu"."""
    left = iter(fds)
    return [_open(handle, left) for handle in handles]


def _reduce(memory: torch.Tensor) -> Any:
    return reduce_tensor(memory)  # type: ignore[no-untyped-call]


def _open(handle: dict[str, Any], fds: Any) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, handle["dtype"])
    shape, strides = handle["shape"], handle["strides"]
    if handle["kind"] == "empty":
        return torch.empty(shape, dtype=dtype, device=handle["device"])
    if handle["kind"] == "cuda":
        rebuild, arguments = pickle.loads(base64.b64decode(handle["ipc"]))
        memory: torch.Tensor = rebuild(*arguments)
        return memory.as_strided(shape, strides)
    fd = next(fds)
    try:
        return _map(fd, handle["elements"], dtype).as_strided(shape, strides)
    finally:
        os.close(fd)


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """The memory from a tensor's first element to its last, as a vector."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return tensor.as_strided((1 + sum((n - 1) * s for n, s in steps),), (1,))


def _map(fd: int, elements: int, dtype: torch.dtype) -> torch.Tensor:
    memory = mmap.mmap(fd, elements * dtype.itemsize)
    return torch.frombuffer(memory, dtype=dtype, count=elements)


def fingerprint(tensor: torch.Tensor) -> int:
    """A number that changes when the tensor's content does: an order-sensitive 64-bit sum."""
    if tensor.numel() == 0:
        return 0
    data = _flat(tensor.detach().resolve_conj().resolve_neg().contiguous()).view(torch.uint8)
    if data.storage_offset() % 8:  # a slice that does not begin at a whole word
        data = data.clone()
    words = data[: data.numel() // 8 * 8].view(torch.int64)
    total = int(data[words.numel() * 8 :].sum())
    for start in range(0, words.numel(), _CHUNK_WORDS):  # bounds the extra memory
        chunk = words[start : start + _CHUNK_WORDS]
        weights = torch.arange(start, start + chunk.numel(), device=chunk.device) * 2 + 1
        total += int((chunk * weights).sum())
    return total
