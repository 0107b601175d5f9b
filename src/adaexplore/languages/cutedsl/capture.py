"""CuTe DSL in a process without a GPU: it compiles for a target, and calls launch nothing.

Pins, of nvidia-cutlass-dsl 4.8: the settings of `DSLSingletonMeta`'s instances, the calls of
`CudaDialectJitCompiledFunction` and of its subclasses, `runtime.from_dlpack`, `HardwareInfo`, and
the lowered code of a host function.
"""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from adaexplore.languages.base import CompiledLaunch
from adaexplore.languages.cutedsl.host import architecture

_ON_CUDA = (2, 0)  # the type and the index of a device in DLPack
_TYPE_OFFSET = 8  # of the device's type in a DLTensor, after its address
_NO_RESERVE = 0x4000  # MAP_NORESERVE of mmap(2)
_PLACE = r"(%\d+) = llvm\.getelementptr %\d+\[0, 2\][^\n]*array<3 x i32>, array<3 x i32>, i64"
_LAUNCH_BYTES = re.compile(_PLACE + r"[^\n]*\n\s*llvm\.store (%\d+), \1 : i64")
"""The store to the third field of a launch's configuration: the bytes of its shared memory."""


def capture(target: str, multiprocessors: int, receive: Callable[[CompiledLaunch], None]) -> None:
    """Compile for `target` from now on, and give every launch to `receive`; see `Dialect.capture`.

    Arguments of calls are not checked. Shared memory whose size depends on them counts as none.
    """
    _compile_for(architecture(target))
    _receive_calls(receive)
    _describe_tensors()
    _describe_gpu(multiprocessors)


def _compile_for(arch: str) -> None:
    from cutlass.base_dsl.dsl import DSLSingletonMeta

    for language in DSLSingletonMeta._instances.values():
        settings = language.envar
        settings.arch, settings.dump_dir = arch, str(Path.cwd())
        settings.keep_ptx = settings.keep_cubin = True


def _receive_calls(receive: Callable[[CompiledLaunch], None]) -> None:
    """Replace every way to call a compiled function."""
    from cutlass.cutlass_dsl import cuda_jit_executor, tvm_ffi_provider

    def call(function: Any, *_: Any, **__: Any) -> None:
        code, shared_bytes = function.artifacts, launch_bytes(str(function.ir_module))
        for kernel in function.kernel_info:
            receive(CompiledLaunch(kernel, code.CUBIN, code.PTX, shared_bytes))

    for owner in (
        cuda_jit_executor.CudaDialectJitCompiledFunction,
        tvm_ffi_provider.TVMFFIJitCompiledFunctionBase,
        tvm_ffi_provider.TVMFFIJitCompiledFunction,
        tvm_ffi_provider.TVMFFIJitCompiledFunctionWithKwargs,
    ):
        owner.__call__ = owner.run_compiled_program = call


def launch_bytes(lowered: str) -> int:
    """Return the largest constant number of bytes that a launch of a host function takes."""
    constants = dict(re.findall(r"(%\d+) = llvm\.mlir\.constant\((\d+) : i64\)", lowered))
    taken = (int(constants.get(name, 0)) for _, name in _LAUNCH_BYTES.findall(lowered))
    return max(taken, default=0)


class _OnGpu:
    """A tensor without data, as DLPack passes one in the memory of a GPU.

    Its memory is mapped and never touched.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _NO_RESERVE
        memory = mmap.mmap(-1, max(tensor.untyped_storage().nbytes(), 1), flags=flags)
        with torch._C.DisableTorchFunction():
            flat = torch.frombuffer(memory, dtype=torch.uint8).view(tensor.dtype)
            place = tensor.size(), tensor.stride(), tensor.storage_offset()
            self._tensor = flat.as_strided(*place)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _ON_CUDA

    def __dlpack__(self, **_: Any) -> Any:
        with torch._C.DisableTorchFunction():
            capsule = self._tensor.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        kind = ctypes.c_int32.from_address(pointer(capsule, b"dltensor") + _TYPE_OFFSET)
        kind.value = _ON_CUDA[0]
        return capsule


def _describe_tensors() -> None:
    """Let tensors without data be passed to functions that are compiled."""
    from cutlass.cute import runtime

    original = runtime.from_dlpack

    def from_dlpack(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(tensor, torch.Tensor):
            tensor = _OnGpu(tensor.detach())
        return original(tensor, *args, **kwargs)

    runtime.from_dlpack = from_dlpack


def _describe_gpu(multiprocessors: int) -> None:
    """Answer the questions of persistent kernels, which the driver is asked."""
    from cutlass.utils import HardwareInfo

    def begin(info: Any, device_id: int = 0) -> None:
        info.device_id = device_id

    def clusters(_: Any, cluster_size: int, stream: object = None) -> int:
        del stream
        return multiprocessors // cluster_size

    HardwareInfo.__init__ = begin
    HardwareInfo.get_max_active_clusters = clusters
    HardwareInfo.get_device_multiprocessor_count = lambda _: multiprocessors
