"""A reference or a candidate brought to life on a device, inside a worker process."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import os
import random
import re
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Mode

NamedTensor = tuple[str, Tensor]
"""An output tensor with its place in the returned value, such as `output["loss"]`."""

_NO_MEMORY = (
    "can't allocate memory",
    "CUDACachingAllocator",
    "CUDA error: out of memory",
    "STATUS_ALLOC_FAILED",
)


@dataclass(frozen=True, slots=True)
class Arguments:
    """How something is called."""

    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)


InitArgs = Arguments
"""Arguments of the constructor."""

Inputs = Arguments
"""Arguments of `forward`."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A module of user code and the model that its class built.

    Whatever goes wrong in a reference (class `Model`) is a `BadProblemError` of one line that names
    the line of the user's file, with the original exception as its cause. A candidate's exceptions
    come through as they are: a failing candidate is data, and the evaluator makes it so.
    """

    module: ModuleType
    model: nn.Module
    init: InitArgs
    device: torch.device
    boundary: Boundary

    @classmethod
    def load(
        cls,
        source: str,
        class_name: str,
        *,
        device: str,
        seed: int,
        mode: Mode,
        folder: Path,
        init: InitArgs | None = None,
        name: str = "",
    ) -> Instance:
        """Imports `source` from a file in `folder` and builds its `class_name` on `device`.

        The same seed gives the same weights. Without `init`, the module's own `get_init_inputs`
        says how the class is built. Messages call the file `name`, by default the class's name.
        """
        where = torch.device(device)
        module_name = _module_name(name or class_name, source)
        file = folder / f"{module_name}.py"
        file.write_text(source, encoding="utf-8")
        boundary = Boundary(name or class_name, file, where, is_reference=class_name == "Model")
        with boundary.entering("the file"), _seeded(where, seed):
            module = _import(module_name, file)
        with boundary.entering("get_init_inputs()"), _seeded(where, seed):
            init = init or _init_args(module)
        model = _build(module, class_name, init, boundary, seed, mode)
        return cls(module, model, init, where, boundary)

    def rebuilt(self, seed: int, mode: Mode) -> Instance:
        """Another model of the same class, with the weights that another seed gives."""
        class_name = "Model" if self.boundary.is_reference else "ModelNew"
        model = _build(self.module, class_name, self.init, self.boundary, seed, mode)
        return dataclasses.replace(self, model=model)

    def inputs(self, seed: int) -> Inputs:
        """What the module's `get_inputs` returns under `seed`, every tensor on the device.

        A list or tuple is positional, a dict is keyword arguments, a lone tensor is one argument.
        """
        with self.boundary.entering("get_inputs()"), _seeded(self.device, seed), torch.no_grad():
            inputs = _call_arguments(self.module.get_inputs())
            return map_tensors(lambda tensor: tensor.detach().to(self.device), inputs)

    def __call__(self, inputs: Inputs) -> list[NamedTensor]:
        """The model's outputs, flattened, without gradients."""
        with self.boundary.entering("forward()"), torch.no_grad():
            return flatten_outputs(self.model(*inputs.args, **inputs.kwargs))


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where calls into user code begin, and where a reference's exceptions become one line."""

    name: str
    file: Path
    device: torch.device
    is_reference: bool

    @contextmanager
    def entering(self, what: str) -> Iterator[None]:
        """Runs the body; a reference's exception becomes a `BadProblemError` about `what`."""
        try:
            yield
        except (Exception, SystemExit) as error:
            if not self.is_reference:
                raise
            raise BadProblemError(self._explain(what, error)) from error

    def _explain(self, what: str, error: BaseException) -> str:
        line = _line_in(self.file, error)
        place = f"{self.name}, line {line}" if line else self.name
        text = (str(error).strip().splitlines() or ["no message"])[0]
        if is_out_of_memory(error):
            wanted = re.search(r"tried to allocate ([\d.]+ ?\w+)", str(error), re.IGNORECASE)
            asked = f" asked for {_readable(wanted[1])} and" if wanted else ""
            return (
                f"{place}: too large for the device: {what}{asked} ran out of memory "
                f"({_capacity(self.device)} in all); reduce the sizes in the file"
            )
        if isinstance(error, ModuleNotFoundError):
            text += "; install it, or put what is needed into the problem's one file"
        if line or not isinstance(error, TypeError | AttributeError):
            return f"{place}: {what} raised {type(error).__name__}: {text}"
        return f"{place}: {what}: {text}"  # what it gave or lacks is wrong, not what it did


def check_outputs(name: str, outputs: list[NamedTensor]) -> None:
    """Raises `BadProblemError` unless every output of the reference `name` can be verified against.

    That is: there is at least one tensor, none is empty, none has NaN.
    """
    if not outputs:
        raise BadProblemError(f"{name}: forward() returns no tensor; return at least one")
    for path, tensor in outputs:
        if tensor.numel() == 0:
            raise BadProblemError(
                f"{name}: {path} is empty (shape {tuple(tensor.shape)}); "
                "every output needs at least one element"
            )
        nans = int(torch.isnan(tensor).sum())
        if nans:
            raise BadProblemError(
                f"{name}: {path} is NaN in {nans} of {tensor.numel()} elements "
                f"({nans / tensor.numel():.1%}); change the inputs or the module so that none is"
            )


def flatten_outputs(value: Any, path: str = "output") -> list[NamedTensor]:
    """The tensors in a returned value in order, each with its path.

    Enters lists, tuples, named tuples, mappings and dataclasses; a `None` inside one is skipped.
    Raises `TypeError`, with the path, for anything else that is not a tensor.
    """
    if isinstance(value, Tensor):
        return [(path, value)]
    if isinstance(value, Mapping):
        by_key = sorted(value.items(), key=lambda item: str(item[0]))  # equal whatever the order
        parts = [(f'{path}["{key}"]', item) for key, item in by_key]
    elif _is_namedtuple(value):
        parts = [(f"{path}.{key}", item) for key, item in value._asdict().items()]
    elif isinstance(value, list | tuple):
        parts = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    elif _is_dataclass_instance(value):
        parts = [(f"{path}.{f.name}", getattr(value, f.name)) for f in dataclasses.fields(value)]
    else:
        raise TypeError(f"{path} is {_type_name(value)}; return tensors")
    return [
        leaf for where, item in parts if item is not None for leaf in flatten_outputs(item, where)
    ]


def map_tensors(fn: Callable[[Tensor], Tensor], inputs: Inputs) -> Inputs:
    """The same arguments with `fn` applied to every tensor, however deep it lies."""
    args, kwargs = _map([inputs.args, inputs.kwargs], fn)
    return Inputs(args, kwargs)


def tensors_of(inputs: Inputs) -> list[Tensor]:
    """Every tensor among the arguments, in order."""
    found: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    map_tensors(note, inputs)
    return found


def _map(value: Any, fn: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return fn(value)
    if isinstance(value, dict):
        return {key: _map(item, fn) for key, item in value.items()}
    if _is_namedtuple(value):
        return type(value)(*(_map(item, fn) for item in value))
    if isinstance(value, list | tuple):
        return type(value)([_map(item, fn) for item in value])
    if _is_dataclass_instance(value):
        fields = [f.name for f in dataclasses.fields(value) if f.init]
        return dataclasses.replace(value, **{f: _map(getattr(value, f), fn) for f in fields})
    return value


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _is_dataclass_instance(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _module_name(name: str, source: str) -> str:
    """A name for `sys.modules` and the file system that no other source shares."""
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9_]', '_', name)}_{digest}"


def _import(module_name: str, file: Path) -> ModuleType:
    """Imports from a real file: tracebacks, `inspect.getsource` and Triton look for the text."""
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None  # the file's suffix is .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses and pickle look their module up
    spec.loader.exec_module(module)
    return module


@contextmanager
def _seeded(device: torch.device, seed: int) -> Iterator[None]:
    """Every generator a problem may draw from starts at `seed`; new tensors lie on `device`."""
    random.seed(seed)
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":  # torch.manual_seed goes through all backends, a hundred times slower
        torch.cuda.init()  # type: ignore[no-untyped-call]
        torch.cuda.default_generators[device.index or 0].manual_seed(seed)
    numpy = sys.modules.get("numpy")  # torch imports it where it is installed
    if numpy is not None:
        numpy.random.seed(seed % 2**32)
    with device:
        yield


def _build(
    module: ModuleType, class_name: str, init: InitArgs, boundary: Boundary, seed: int, mode: Mode
) -> nn.Module:
    with boundary.entering(f"{class_name}(...)"), _seeded(boundary.device, seed):
        model = getattr(module, class_name)(*init.args, **init.kwargs)
        if not isinstance(model, nn.Module):
            raise TypeError(f"{class_name} must be an nn.Module, not {_type_name(model)}")
        model.to(boundary.device)  # what was built from NumPy or on a device of its own
    if mode != "as-built":
        model.train(mode == "train")
    return model


def _init_args(module: ModuleType) -> InitArgs:
    """Constructor arguments in the forms in use: absent, list, dict, or `[list, dict]`."""
    get_init_inputs = getattr(module, "get_init_inputs", None)
    if get_init_inputs is None:
        return InitArgs()
    match get_init_inputs():
        case [list() | tuple() as args, dict() as kwargs]:
            return InitArgs(list(args), kwargs)
        case returned:
            return _call_arguments(returned)


def _call_arguments(returned: Any) -> Arguments:
    match returned:
        case list() | tuple():
            return Arguments(list(returned))
        case dict():
            return Arguments([], returned)
        case Tensor():
            return Arguments([returned])
        case _:
            raise TypeError(f"returned {_type_name(returned)}; return a list or a dict")


def _type_name(value: Any) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _line_in(file: Path, error: BaseException) -> int | None:
    """The innermost line of `file` that the exception passed through."""
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, of the device or of the machine.

    CUDA's allocator has a type of its own, but after a fork it can fail to report with it; CUDA,
    its libraries and the CPU's allocator raise a `RuntimeError` that says so.
    """
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _NO_MEMORY)


def causes(error: BaseException) -> Iterator[BaseException]:
    """The exception and those it comes from; Dynamo wraps what a backend raises."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = getattr(cause, "inner_exception", None) or cause.__cause__


def _readable(size: str) -> str:
    """The CPU allocator's "123 bytes" in GiB; CUDA's messages are readable already."""
    number, _, unit = size.partition(" ")
    return f"{int(number) / 2**30:.1f} GiB" if unit == "bytes" else size


def _capacity(device: torch.device) -> str:
    """The device's memory; on the CPU, what the process may have of it (see `limits`)."""
    if device.type == "cuda":
        total = torch.cuda.get_device_properties(device).total_memory
    else:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        allowed, _ = resource.getrlimit(resource.RLIMIT_DATA)
        if allowed != resource.RLIM_INFINITY:
            total = min(total, allowed)
    return f"{total / 2**30:.1f} GiB"
