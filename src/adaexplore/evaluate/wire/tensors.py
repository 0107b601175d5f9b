"""Tensors shared by two processes: memory files on the CPU, CUDA IPC on a GPU.

Sharing goes one way only: the judge shares, a candidate's process opens. A handle may hold pickled
data, so a candidate's process never shares anything with the judge.
"""

from __future__ import annotations

import base64
import ctypes
import fcntl
import mmap
import os
import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import torch
from torch.multiprocessing.reductions import reduce_tensor

from adaexplore.evaluate.wire.messages import RingForm, TensorHandle

_CHUNK_WORDS = 1 << 24
_ALIGNMENT_BYTES = 512  # of the tensors in a ring: as the allocators' own, or kernels would differ
_PARTS, _PART_WORDS = 64, 1 << 9
_pools: dict[torch.device, Any] = {}

Strides = tuple[int, ...]
Layout = tuple[Strides, ...]
"""The strides of several tensors."""


@dataclass(frozen=True)
class SharedTensor:
    """A tensor in shared memory, and the handle by which another process opens it.

    On the CPU `fds` holds the memory file's descriptor, to be sent beside `handle`.
    """

    tensor: torch.Tensor
    handle: TensorHandle
    fds: tuple[int, ...] = ()

    def fill(self, source: torch.Tensor) -> None:
        """Copy the content of `source`, which has the same shape, strides and dtype."""
        copy_memory(self.tensor, source)

    def close(self) -> None:
        """Close the descriptor; the memory lives on while a process maps it."""
        for fd in self.fds:
            os.close(fd)


def share(tensor: torch.Tensor) -> SharedTensor:
    """Return a copy of `tensor` in shared memory, with the same shape, strides and dtype."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    shape, strides = tuple(tensor.shape), tuple(tensor.stride())
    if tensor.numel() == 0:
        handle = TensorHandle("empty", shape, strides, _name(tensor.dtype), str(tensor.device))
        return SharedTensor(tensor.clone(), handle)
    whole = _share_memory(_flat(tensor).numel(), tensor.dtype, tensor.device)
    handle = replace(whole.handle, shape=shape, strides=strides)
    shared = SharedTensor(whole.tensor.as_strided(shape, strides), handle, whole.fds)
    shared.fill(tensor)
    return shared


Allocate = Callable[[int, torch.dtype, torch.device], SharedTensor]
"""Allocates a vector: number of elements, dtype, device."""


@dataclass(frozen=True)
class SharedRing:
    """Several tensors of one shape behind each other in one piece of shared memory.

    `step` is the number of elements from one tensor to the next.
    """

    memory: SharedTensor
    tensors: list[torch.Tensor]
    step: int

    def words(self, index: int) -> torch.Tensor:
        """Return the memory of one tensor as integers, up to where the next one begins."""
        start = index * self.step
        return self.memory.tensor[start : start + self.step].view(torch.int64)

    def copy_of(self, index: int) -> torch.Tensor:
        """Return a copy of one tensor, complete when this returns; one thread makes it.

        In a random order: nobody can complete a part just before its turn.
        """
        words, part = self.words(index), self.tensors[index]
        if words.is_cuda:
            copy = words.clone()
            torch.cuda.synchronize(words.device)
        else:
            copy = torch.empty_like(words)
            for start, stop in shuffled_parts(len(words)):
                move_memory(copy[start:stop], words[start:stop])
        return copy.view(part.dtype).as_strided(part.shape, part.stride(), 0)

    def laid_out(self, strides: Strides) -> SharedRing:
        """Return the same memory with the dimensions of each tensor in the order of `strides`.

        The strides may come from a process that nobody trusts. Where they are not dense (see
        `dense_strides`), the tensors are contiguous: none reaches beyond its part of the memory.
        """
        form = self.memory.handle.ring
        assert form is not None
        form = replace(form, strides=dense_strides(form.shape, strides) or _contiguous(form.shape))
        memory = replace(self.memory, handle=replace(self.memory.handle, ring=form))
        return SharedRing(memory, _parts(memory.tensor, form), self.step)


def share_ring(like: torch.Tensor, count: int) -> SharedRing:
    """Make `count` tensors of the shape, strides and dtype of `like`, not yet filled."""
    return _ring(like, count, _share_memory)


def private_ring(like: torch.Tensor, count: int) -> SharedRing:
    """Make tensors as `share_ring` does, in memory that no other process can open.

    On the CPU it is a memory file too, whose pages are like those of shared memory.
    """
    return _ring(like, count, _share_memory if like.device.type == "cpu" else _own_memory)


def _ring(like: torch.Tensor, count: int, allocate: Allocate) -> SharedRing:
    elements = _flat(like).numel() if like.numel() else 0
    multiple = max(_ALIGNMENT_BYTES // like.element_size(), 1)
    step = max(-(-elements // multiple), 1) * multiple
    memory = allocate(count * step, like.dtype, like.device)
    form = RingForm(count, step, tuple(like.shape), tuple(like.stride()))
    memory = replace(memory, handle=replace(memory.handle, ring=form))
    return SharedRing(memory, _parts(memory.tensor, form), step)


def open_ring(handle: TensorHandle, fds: Sequence[int]) -> SharedRing:
    """Open a ring from `share_ring`; closes `fds`."""
    assert handle.ring is not None
    memory = _open(handle, iter(fds))
    parts = _parts(memory, handle.ring)
    return SharedRing(SharedTensor(memory, handle), parts, handle.ring.step)


def _parts(memory: torch.Tensor, ring: RingForm) -> list[torch.Tensor]:
    return [memory.as_strided(ring.shape, ring.strides, i * ring.step) for i in range(ring.count)]


def dense_strides(shape: Sequence[int], strides: Strides) -> Strides | None:
    """Return strides that fill memory without gaps or overlaps, 1 for dimensions of size 1.

    Return None for others. Two dense tensors of one shape have the same order in memory if, and
    only if, the returned strides are equal.
    """
    return _dense_strides(shape, strides) if len(strides) == len(shape) else None


@lru_cache(maxsize=1024)  # timed calls ask for it
def _dense_strides(shape: Sequence[int], strides: Strides) -> Strides | None:
    expected = 1
    for size, stride in sorted(zip(shape, strides, strict=True), key=lambda pair: pair[1]):
        if size != 1:
            if stride != expected:
                return None
            expected *= size
    return tuple(1 if n == 1 else s for n, s in zip(shape, strides, strict=True))


def _contiguous(shape: Sequence[int]) -> Strides:
    return tuple(1 if n == 1 else prod(shape[i + 1 :]) for i, n in enumerate(shape))


def _share_memory(elements: int, dtype: torch.dtype, device: torch.device) -> SharedTensor:
    """A vector of uninitialised shared memory."""
    handle = TensorHandle("private", (elements,), (1,), _name(dtype))
    if device.type == "cuda":
        with torch.cuda.use_mem_pool(_pool(device)):
            memory = torch.empty(elements, dtype=dtype, device=device)
        reduced = base64.b64encode(pickle.dumps(_reduce(memory))).decode()
        return SharedTensor(memory, replace(handle, kind="cuda", ipc=reduced))
    try:
        fd = os.memfd_create("adaexplore-tensor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except PermissionError:  # a confined process (see `examine`) shares with no other
        return _own_memory(elements, dtype, device)
    os.ftruncate(fd, elements * dtype.itemsize)
    # The process that opens it may write to it, but cannot shrink it under the judge.
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    memory = _map(fd, elements, dtype)
    return SharedTensor(memory, replace(handle, kind="cpu", elements=elements), (fd,))


def _own_memory(elements: int, dtype: torch.dtype, device: torch.device) -> SharedTensor:
    """A vector of uninitialised memory of this process alone."""
    handle = TensorHandle("private", (elements,), (1,), _name(dtype))
    return SharedTensor(torch.empty(elements, dtype=dtype, device=device), handle)


def _pool(device: torch.device) -> Any:
    """Return the memory pool of shared CUDA tensors, which holds nothing else.

    A CUDA IPC handle opens the whole block that a tensor lies in: in the common pool the process
    that opens an input would see the truths beside it.
    """
    if device not in _pools:
        _pools[device] = torch.cuda.MemPool()
    return _pools[device]


def _name(dtype: torch.dtype) -> str:
    return str(dtype).partition(".")[2]


def open_shared(handles: Sequence[TensorHandle], fds: Sequence[int]) -> list[torch.Tensor]:
    """Open the tensors behind `handles`; closes `fds`, one for each handle of kind "cpu"."""
    left = iter(fds)
    return [_open(handle, left) for handle in handles]


def _reduce(memory: torch.Tensor) -> Any:
    return reduce_tensor(memory)  # type: ignore[no-untyped-call]


def _open(handle: TensorHandle, fds: Iterator[int]) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, handle.dtype)
    if handle.kind == "empty":
        return torch.empty(handle.shape, dtype=dtype, device=handle.device)
    if handle.kind == "cuda":
        rebuild, arguments = pickle.loads(base64.b64decode(handle.ipc))
        memory: torch.Tensor = rebuild(*arguments)
        return memory.as_strided(handle.shape, handle.strides)
    fd = next(fds)
    try:
        return _map(fd, handle.elements, dtype).as_strided(handle.shape, handle.strides)
    finally:
        os.close(fd)


def copy_memory(home: torch.Tensor, source: torch.Tensor) -> None:
    """Copy memory to memory, since elements of an expanded tensor share theirs.

    Both have the same shape, strides and dtype.
    """
    if source.numel() > 0:
        _flat(home).copy_(_flat(source))


def shuffled_parts(words: int) -> list[tuple[int, int]]:
    """Return the parts of a memory, begin and end, in a random order."""
    step = max(-(-words // _PARTS), _PART_WORDS)
    parts = [(start, min(start + step, words)) for start in range(0, words, step)]
    random.SystemRandom().shuffle(parts)
    return parts


def move_memory(home: torch.Tensor, source: torch.Tensor) -> None:
    """Copy memory of one size on the CPU in the calling thread alone.

    PyTorch would share the work with threads that keep processors busy for a while afterwards.
    """
    ctypes.memmove(home.data_ptr(), source.data_ptr(), source.nbytes)


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """The memory from a tensor's first element to its last, as a vector."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return tensor.as_strided((1 + sum((n - 1) * s for n, s in steps),), (1,))


def _map(fd: int, elements: int, dtype: torch.dtype) -> torch.Tensor:
    memory = mmap.mmap(fd, elements * dtype.itemsize)
    return torch.frombuffer(memory, dtype=dtype, count=elements)


def fingerprint(tensor: torch.Tensor) -> int:
    """Return an order-sensitive 64-bit sum, which changes with the tensor's content."""
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
