"""A pretended GPU for the candidate's host code: CPU or meta tensors that claim to be on CUDA.

Only frames of the candidate's own files, and of packages that generate kernels for it
(`Dialect.generator`), get false answers. PyTorch and Triton call the same functions to choose a
path, and get the truth.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import torch
import triton.testing
from torch._guards import active_fake_mode
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from adaexplore.evaluate.kernels.autocast import Autocast, CudaAutocast
from adaexplore.evaluate.kernels.targets import WARP, NeedsGpuError, Target
from adaexplore.languages import DIALECTS

CUDA = torch.device("cuda", 0)
_UNFILLED = frozenset(
    {torch.empty, torch.empty_like, torch.empty_strided, torch.Tensor.new_empty}
    | {torch.Tensor.new_empty_strided}
)
_STAYS = frozenset({torch.Tensor.cpu, torch.Tensor.pin_memory})
_COMPARISONS = frozenset({torch.equal, torch.allclose, torch.Tensor.equal, torch.Tensor.allclose})


class Shim:
    """The false answers for a candidate with files in `folder`; `device` holds its real tensors.

    `install` is permanent and comes before the candidate's code is loaded; `mode` encloses every
    call of it. On the meta device tensors have no values, so their comparisons return True.
    """

    def __init__(self, target: Target, folder: Path, device: Literal["cpu", "meta"]) -> None:
        self._target = target
        self._deceived = (f"{folder}/", *_generators())
        self.device = torch.device(device)
        self.autocast = Autocast()
        self._addresses: dict[int, int] = {}

    def mode(self) -> TorchFunctionMode:
        """Return the mode that the candidate's calls of PyTorch pass through."""
        return _Redirect(self)

    def install(self) -> None:
        """Patch this process."""
        self._patch_cuda()
        self._patch_wrappers()
        self._patch_tensors()
        self._patch_autocast()
        self._answer(torch, "compile", _uncompiled)
        self._answer(torch, "set_default_device", lambda _: None)
        for name in ("do_bench", "do_bench_cudagraph"):
            setattr(triton.testing, name, _bench)
        # A mode that sees `torch.autograd.grad` is off in the backward passes of candidates.
        vars(torch.autograd)["has_torch_function"] = lambda _: False

    def asked_by_candidate(self, depth: int) -> bool:
        """Return True if the frame `depth` above the caller belongs to the candidate."""
        return sys._getframe(depth + 1).f_code.co_filename.startswith(self._deceived)

    def _answer(self, owner: Any, name: str, answer: Callable[..., Any]) -> None:
        """Replace a function by `answer` for calls from the candidate."""
        original = getattr(owner, name)

        @functools.wraps(original)
        def asked(*args: Any, **kwargs: Any) -> Any:
            return (answer if self.asked_by_candidate(1) else original)(*args, **kwargs)

        setattr(owner, name, asked)

    def _patch_cuda(self) -> None:
        cuda, target = torch.cuda, self._target
        answers: dict[str, Any] = {
            "is_available": True,
            "is_initialized": True,
            "is_bf16_supported": True,
            "is_current_stream_capturing": True,  # code with a graph of its own launches directly
            "device_count": 1,
            "current_device": 0,
            "get_device_capability": target.capability,
            "get_device_name": target.gpu,
            "get_device_properties": _properties(target),
            "current_stream": _Handle(),
            "default_stream": _Handle(),
            "mem_get_info": (target.memory_bytes, target.memory_bytes),
            "memory_allocated": 0,
            "max_memory_allocated": 0,
            "memory_reserved": 0,
            "reset_peak_memory_stats": None,
            "empty_cache": None,
            "synchronize": None,
            "set_device": None,
            "init": None,
            "manual_seed": None,
            "manual_seed_all": None,
        }
        for name, value in answers.items():
            self._answer(cuda, name, lambda *_, answer=value, **__: answer)
        if len(self._deceived) > 1:
            self._describe_to_generators()
        for name in ("Stream", "Event", "stream", "device", "_DeviceGuard"):
            setattr(cuda, name, type(name, (_Handle,), {}))
        for name in ("CUDAGraph", "graph", "make_graphed_callables"):
            self._answer(cuda, name, _no_graphs)

    def _patch_wrappers(self) -> None:
        """Patch the functions that TorchInductor's wrappers call past `torch.cuda`."""

        def empty(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
            return torch.empty_strided(size, stride, dtype=dtype, device=CUDA)  # see `mode`

        inner: Any = torch._C
        inner._cuda_getCurrentRawStream = lambda _: 0
        inner._dynamo.guards._empty_strided_cuda = empty

    def _describe_to_generators(self) -> None:
        """Make TorchInductor, which lowers operations for generators, see the target as its GPU."""
        from torch._inductor.runtime.hints import DeviceProperties

        target = self._target
        major, minor = target.capability
        described = DeviceProperties(
            type="cuda",
            index=0,
            multi_processor_count=target.multiprocessors,
            cc=10 * major + minor,
            major=major,
            regs_per_multiprocessor=target.registers,
            max_threads_per_multi_processor=target.threads,
            warp_size=WARP,
        )
        setattr(DeviceProperties, "create", lambda _: described)  # noqa: B010 - typed

    def _patch_tensors(self) -> None:
        base: Any = torch._C.TensorBase
        lies = {"is_cuda": True, "is_cpu": False, "is_meta": False, "device": CUDA}
        for name, lie in lies.items():
            setattr(torch.Tensor, name, property(self._lying(getattr(base, name).__get__, lie)))
        self._answer(torch.Tensor, "get_device", lambda _: 0)
        if self.device.type == "meta":
            address = self._address
            setattr(torch.Tensor, "data_ptr", lambda tensor: address(tensor))  # noqa: B010 - typed

    def _lying(self, truth: Callable[[Any], Any], lie: Any) -> Callable[[Any], Any]:
        def read(tensor: torch.Tensor) -> Any:
            return lie if self.asked_by_candidate(1) else truth(tensor)

        return read

    def _address(self, tensor: torch.Tensor) -> int:
        """Return a made-up address; like an allocator's, addresses are aligned and far apart."""
        storage = tensor.untyped_storage()._cdata
        start = self._addresses.setdefault(storage, (len(self._addresses) + 1) << 40)
        return start + int(tensor.storage_offset()) * tensor.element_size()

    def _patch_autocast(self) -> None:
        shim, original = self, torch.autocast

        def autocast(device_type: str = "cuda", *args: Any, **kwargs: Any) -> Any:
            if torch.device(device_type).type == "cuda":
                return CudaAutocast(shim.autocast, *args, **kwargs)
            return original(device_type, *args, **kwargs)

        for owner in (torch, torch.amp):
            self._answer(owner, "autocast", autocast)
        self._answer(torch.cuda.amp, "autocast", functools.partial(_old_autocast, autocast))


class _Redirect(TorchFunctionMode):
    """A mode that redirects CUDA to the device of the candidate's tensors.

    Allocated memory that is not filled holds NaN (integers: a large number), so that no result can
    be right by luck.
    """

    def __init__(self, shim: Shim) -> None:
        super().__init__()
        self._shim = shim

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run one call of a function of PyTorch."""
        if func is torch.device or active_fake_mode():  # a device named, or a trace
            return func(*args, **(kwargs or {}))
        kwargs = {k: self._redirected(v) for k, v in (kwargs or {}).items() if k != "pin_memory"}
        args = tuple(self._redirected(a) for a in args)
        meta = self._shim.device.type == "meta"
        if func is torch.Tensor.cuda:
            return args[0].to(self._shim.device)
        if func in _STAYS:
            return args[0]
        if meta and func in _COMPARISONS:
            return True
        result = self._shim.autocast.call(func, args, kwargs)
        if not meta and func in _UNFILLED and isinstance(result, torch.Tensor):
            _fill_with_nonsense(result)
        if meta and func is scaled_dot_product_attention and result.dim() == 4:
            return result.transpose(1, 2).contiguous().transpose(1, 2)  # layout of CUDA's kernels
        return result

    def _redirected(self, value: Any) -> Any:
        device = self._shim.device
        if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
            return device
        if isinstance(value, torch.device) and value.type == "cuda":
            return device
        if device.type == "meta" and isinstance(value, str | torch.device) and str(value) == "cpu":
            return device
        return value


def _fill_with_nonsense(tensor: torch.Tensor) -> None:
    if tensor.is_floating_point() or tensor.is_complex():
        tensor.fill_(float("nan"))
    elif tensor.dtype is not torch.bool:
        tensor.fill_(torch.iinfo(tensor.dtype).max // 3)


def _generators() -> Iterator[str]:
    """Yield the folder of each loaded generator."""
    for dialect in DIALECTS.values():
        package = sys.modules.get(dialect.generator or "")
        if package is not None:
            yield f"{package.__path__[0]}/"


class _Handle:
    """A stream, an event or the guard of a device whose every method does nothing."""

    cuda_stream = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> _Handle:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: 1.0 if name == "elapsed_time" else None


def _properties(target: Target) -> SimpleNamespace:
    major, minor = target.capability
    return SimpleNamespace(
        name=target.gpu,
        major=major,
        minor=minor,
        total_memory=target.memory_bytes,
        multi_processor_count=target.multiprocessors,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=target.shared_bytes,
        shared_memory_per_multiprocessor=target.shared_bytes + 1024,
        regs_per_multiprocessor=target.registers,
        max_threads_per_multi_processor=target.threads,
        max_threads_per_block=target.threads_a_block,
        warp_size=WARP,
        L2_cache_size=target.l2_bytes,
        is_integrated=0,
        is_multi_gpu_board=0,
    )


def _no_graphs(*_: Any, **__: Any) -> Any:
    raise NeedsGpuError(
        "CUDA graphs cannot be captured or replayed without a GPU: launch without one where "
        "torch.cuda.is_current_stream_capturing() returns True, as it does here"
    )


def _uncompiled(model: Any = None, **_: Any) -> Any:
    """Replace `torch.compile`: return the model as it is, because Inductor needs the GPU."""
    return model if model is not None else lambda function: function


def _old_autocast(autocast: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Replace `torch.cuda.amp.autocast(enabled, dtype, cache_enabled)`."""
    names = ("enabled", "dtype", "cache_enabled")
    return autocast("cuda", **dict(zip(names, args, strict=False)), **kwargs)


def _bench(call: Callable[[], object], *_: Any, quantiles: Any = None, **__: Any) -> Any:
    """Replace `triton.testing.do_bench`: call once and return the same time for every function."""
    call()
    return [1.0] * len(quantiles) if quantiles else 1.0
