"""Tensors that two processes see: memory files on the CPU, CUDA IPC on a GPU.

Sharing goes one way only: the judge shares, a candidate's process opens. What is opened may hold
pickled data, so a candidate's process never shares anything with the judge.
"""

from __future__ import annotations

import base64
import fcntl
import mmap
import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.multiprocessing.reductions import reduce_tensor

_CHUNK_WORDS = 1 << 24
_ALIGNMENT_BYTES = 512  # of the tensors in a ring: as the allocators' own, or kernels would differ
_pools: dict[torch.device, Any] = {}


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
        copy_memory(self.tensor, source)

    def close(self) -> None:
        """Closes the descriptor; the memory lives on while somebody maps it."""
        for fd in self.fds:
            os.close(fd)


def share(tensor: torch.Tensor) -> SharedTensor:
    """A copy of `tensor` in shared memory, with the same shape, strides and dtype."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    shape, strides = list(tensor.shape), list(tensor.stride())
    if tensor.numel() == 0:
        handle = {"kind": "empty", "device": str(tensor.device), "dtype": _name(tensor.dtype)}
        return SharedTensor(tensor.clone(), handle | {"shape": shape, "strides": strides})
    whole = _share_memory(_flat(tensor).numel(), tensor.dtype, tensor.device)
    handle = whole.handle | {"shape": shape, "strides": strides}
    shared = SharedTensor(whole.tensor.as_strided(shape, strides), handle, whole.fds)
    shared.fill(tensor)
    return shared


@dataclass(frozen=True)
class SharedRing:
    """Several tensors of one shape behind each other in one piece of shared memory."""

    memory: SharedTensor
    tensors: list[torch.Tensor]

    def rows(self, count: int, start: int, length: int) -> torch.Tensor:
        """The same stretch of the memory of the first `count` tensors, one row for each."""
        step = self.memory.handle["ring"]["step"]
        return self.memory.tensor.as_strided((count, length), (step, 1), start)


def share_ring(like: torch.Tensor, count: int) -> SharedRing:
    """`count` tensors of the shape, strides and dtype of `like`, not yet filled."""
    elements = _flat(like).numel() if like.numel() else 0
    multiple = max(_ALIGNMENT_BYTES // like.element_size(), 1)
    step = max(-(-elements // multiple), 1) * multiple
    memory = _share_memory(count * step, like.dtype, like.device)
    memory.handle["ring"] = {
        "count": count,
        "step": step,
        "shape": list(like.shape),
        "strides": list(like.stride()),
    }
    return SharedRing(memory, _parts(memory.tensor, memory.handle["ring"]))


def open_ring(handle: dict[str, Any], fds: Sequence[int]) -> list[torch.Tensor]:
    """The tensors of a ring from `share_ring`; takes over `fds`."""
    return _parts(_open(handle, iter(fds)), handle["ring"])


def _parts(memory: torch.Tensor, ring: dict[str, Any]) -> list[torch.Tensor]:
    shape, strides, step = ring["shape"], ring["strides"], ring["step"]
    return [memory.as_strided(shape, strides, i * step) for i in range(ring["count"])]


def _share_memory(elements: int, dtype: torch.dtype, device: torch.device) -> SharedTensor:
    """A vector of uninitialised shared memory."""
    handle = {"shape": [elements], "strides": [1], "dtype": _name(dtype)}
    if device.type == "cuda":
        with torch.cuda.use_mem_pool(_pool(device)):
            memory = torch.empty(elements, dtype=dtype, device=device)
        reduced = base64.b64encode(pickle.dumps(_reduce(memory))).decode()
        return SharedTensor(memory, handle | {"kind": "cuda", "ipc": reduced})
    try:
        fd = os.memfd_create("adaexplore-tensor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except PermissionError:  # a confined process (see `examine`) has nobody to share with
        return SharedTensor(torch.empty(elements, dtype=dtype), handle | {"kind": "private"})
    os.ftruncate(fd, elements * dtype.itemsize)
    # Who opens it may write to it, but not take it away under the judge's hands.
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    memory = _map(fd, elements, dtype)
    return SharedTensor(memory, handle | {"kind": "cpu", "elements": elements}, (fd,))


def _pool(device: torch.device) -> Any:
    """Where shared CUDA tensors live, and nothing else.

    A CUDA IPC handle opens the whole block that a tensor lies in: in the common pool the process
    that opens an input would see the truths beside it.
    """
    if device not in _pools:
        _pools[device] = torch.cuda.MemPool()
    return _pools[device]


def _name(dtype: torch.dtype) -> str:
    return str(dtype).partition(".")[2]


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


def copy_memory(home: torch.Tensor, source: torch.Tensor) -> None:
    """Copies memory to memory, since elements of an expanded tensor share theirs.

    Both have the same shape, strides and dtype.
    """
    if source.numel() > 0:
        _flat(home).copy_(_flat(source))


def stretch(tensor: torch.Tensor, start: int = 0, length: int | None = None) -> torch.Tensor:
    """Elements of a tensor in the order of its memory, from `start` on."""
    flat = _flat(tensor) if tensor.numel() else tensor.flatten()
    return flat[start:] if length is None else flat[start : start + length]


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
