"""A reference or a candidate, built on a device inside a worker process."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import io
import os
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Access, Mode, Problem, Workload
from adaexplore.core.verdict.gradients import Gradients
from adaexplore.sandbox.user.hang import limited
from adaexplore.sandbox.user.imports import make_importable
from adaexplore.sandbox.user.randomness import perturb, seeded
from adaexplore.sandbox.user.training import TrainingStep, gradients_of
from adaexplore.sandbox.user.values import (
    Arguments,
    InitArgs,
    Inputs,
    NamedTensor,
    flatten_outputs,
    map_tensors,
    type_name,
)

_NO_ACCESS = Access()
_DRAWN = Workload()
_LITTLE = 0.1  # of a GPU, which is not told of
_NO_MEMORY = (
    "can't allocate memory",
    "CUDACachingAllocator",
    "CUDA error: out of memory",
    "STATUS_ALLOC_FAILED",
)


@dataclass(frozen=True, slots=True)
class Instance:
    """A module of user code and the model that its class built.

    With `gradients`, the model is a training step of the class's own (see `training`).

    Any exception of a reference (class `Model`) becomes a `BadProblemError` of one line that names
    the line of the user's file, with the original exception as its cause. A candidate's exceptions
    are not changed: a failing candidate is data, and the evaluator records it.
    """

    module: ModuleType
    model: nn.Module
    init: InitArgs
    device: torch.device
    boundary: Boundary
    weights: Stored | None = None
    gradients: Gradients | None = None

    @property
    def layers(self) -> int:
        """The number of the model's modules without modules inside."""
        return sum(next(module.children(), None) is None for module in self.model.modules())

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
        access: Access = _NO_ACCESS,
        weights: Stored | None = None,
        gradients: Gradients | None = None,
    ) -> Instance:
        """Import `source` from a file in `folder` and build its `class_name` on `device`.

        The same seed gives the same weights; `weights`, a stored state dict, replaces them. Without
        `init`, the module's own `get_init_inputs` gives the constructor's arguments. The source
        runs with the `__file__` and the modules of `access`. Messages call the file `name`, by
        default the name of the class.
        """
        where = torch.device(device)
        module_name = _module_name(name or class_name, source)
        file = folder / f"{module_name}.py"
        file.write_text(source, encoding="utf-8")
        boundary = Boundary(name or class_name, file, where, is_reference=class_name == "Model")
        make_importable(access)
        with boundary.entering("the file"), seeded(where, seed):
            module = import_file(module_name, file, access.file)
        with boundary.entering("get_init_inputs()"), seeded(where, seed):
            init = init or _init_args(module)
        instance = cls(module, nn.Module(), init, where, boundary, weights, gradients)
        return dataclasses.replace(instance, model=instance._build(class_name, seed, mode))

    @classmethod
    def of(cls, problem: Problem, folder: Path, *, device: str = "") -> Instance:
        """Build the reference of a problem, on the problem's device unless another is given."""
        return cls.load(
            problem.source,
            "Model",
            device=device or problem.device,
            seed=problem.seed,
            mode=problem.mode,
            folder=folder,
            name=f"{problem.name}.py",
            access=problem.access,
            weights=Stored(problem.weights, problem.weights_digest) if problem.weights else None,
        )

    @classmethod
    def judged(cls, problem: Problem, folder: Path, *, device: str = "") -> Instance:
        """Build the reference as `of` does, as a training step where gradients are judged."""
        plain = cls.of(problem, folder, device=device)
        if not problem.checks.backward:
            return plain
        inputs = plain.inputs(problem.seed, problem.workloads[0])
        with plain.boundary.entering("the backward pass"):
            gradients = gradients_of(plain.model, inputs)
            step = TrainingStep(plain.model, gradients)
        return dataclasses.replace(plain, model=step, gradients=gradients)

    def rebuilt(self, seed: int, mode: Mode) -> Instance:
        """Return another model of the same class with other weights.

        The constructor draws them under `seed`. Where the weights were stored, every parameter is
        scaled, element by element, by a random factor between 0.75 and 1.25 instead.
        """
        class_name = "Model" if self.boundary.is_reference else "ModelNew"
        model = self._build(class_name, seed, mode)
        if self.weights:
            perturb(model, seed)
        return dataclasses.replace(self, model=model)

    def inputs(self, seed: int, workload: Workload = _DRAWN) -> Inputs:
        """Return the inputs of a workload, every tensor on the device.

        Drawn inputs are what the workload's expression gives under `seed`: a list or tuple is
        positional, a dict is keyword arguments, a lone tensor is one argument. Captured inputs are
        the same under every seed.
        """
        with self.boundary.entering(workload.file or workload.draw), torch.no_grad():
            if workload.file:
                stored = Stored(workload.file, workload.digest).load()
                inputs = Inputs(list(stored["args"]), dict(stored["kwargs"]))
            else:
                with seeded(self.device, seed):
                    inputs = _call_arguments(eval(workload.draw, vars(self.module)))
            inputs = map_tensors(lambda tensor: tensor.detach().to(self.device), inputs)
        if not isinstance(self.model, TrainingStep):
            return inputs
        with self.boundary.entering("forward()"):
            return self.model.with_upstream(inputs)

    def __call__(self, inputs: Inputs) -> list[NamedTensor]:
        """Return the model's outputs, flattened, without gradients.

        A candidate's training step must be done with forward before it goes backward.
        """
        call: Any = self.model
        has_data = self.device.type != "meta"
        if isinstance(call, TrainingStep) and has_data and not self.boundary.is_reference:
            call = call.in_turn
        with self.boundary.entering("forward()"), torch.no_grad():
            return flatten_outputs(call(*inputs.args, **inputs.kwargs))

    def _build(self, class_name: str, seed: int, mode: Mode) -> nn.Module:
        with self.boundary.entering(f"{class_name}(...)"), seeded(self.device, seed):
            model = getattr(self.module, class_name)(*self.init.args, **self.init.kwargs)
            if not isinstance(model, nn.Module):
                raise TypeError(f"{class_name} must be an nn.Module, not {type_name(model)}")
            model.to(self.device)  # what was built from NumPy or on a device of its own
        if self.weights:
            with self.boundary.entering(self.weights.file):
                model.load_state_dict(self.weights.load())
        if mode != "as-built":
            model.train(mode == "train")
        if self.gradients is None:
            return model
        with self.boundary.entering(f"{class_name}(...)"):
            return TrainingStep(model, self.gradients)


@dataclass(frozen=True, slots=True)
class Stored:
    """A file of tensors that `torch.save` wrote, and the sha256 of its bytes where it is known."""

    file: str
    digest: str = ""

    def load(self) -> Any:
        """Return the content, on the CPU; raise `ValueError` for a file that has changed."""
        content = Path(self.file).read_bytes()
        if self.digest and hashlib.sha256(content).hexdigest() != self.digest:
            raise ValueError("the file has changed since it was captured; capture it again")
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)


@dataclass(frozen=True, slots=True)
class Boundary:
    """The boundary to user code, at which a reference's exceptions become one line."""

    name: str
    file: Path
    device: torch.device
    is_reference: bool

    @contextmanager
    def entering(self, what: str) -> Iterator[None]:
        """Run the body; a reference's exception becomes a `BadProblemError` about `what`.

        A reference's call is held to the limit of this process (see `hang`).
        """
        try:
            with limited() if self.is_reference else nullcontext():
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
                f"({memory_in_words(self.device)}); reduce the sizes in the file"
            )
        if isinstance(error, ModuleNotFoundError):
            text += "; install it, or put it beside the problem's file"
        if line or not isinstance(error, TypeError | AttributeError):
            return f"{place}: {what} raised {type(error).__name__}: {text}"
        return f"{place}: {what}: {text}"  # what it gave or lacks is wrong, not what it did


def _module_name(name: str, source: str) -> str:
    """Return a name for `sys.modules` and the file system that no other source shares."""
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9_]', '_', name)}_{digest}"


def import_file(module_name: str, file: Path, runs_as: str = "") -> ModuleType:
    """Import from a real file: tracebacks, `inspect.getsource` and Triton look for the text.

    The source sees `runs_as` as its `__file__`, where that is given.
    """
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None  # the file's suffix is .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = runs_as or module.__file__
    sys.modules[module_name] = module  # dataclasses and pickle look their module up
    spec.loader.exec_module(module)
    return module


def _init_args(module: ModuleType) -> InitArgs:
    """Return the constructor's arguments, given as nothing, a list, a dict, or `[list, dict]`."""
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
            raise TypeError(f"returned {type_name(returned)}; return a list or a dict")


def _line_in(file: Path, error: BaseException) -> int | None:
    """Return the innermost line of `file` that the exception passed through."""
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out, of the device or of the machine.

    CUDA's allocator has a type of its own, but after a fork it can fail to report with it; CUDA,
    its libraries and the CPU's allocator raise a `RuntimeError` that says so.
    """
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _NO_MEMORY)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and its causes; Dynamo wraps the exceptions of a backend."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = getattr(cause, "inner_exception", None) or cause.__cause__


def _readable(size: str) -> str:
    """Return the CPU allocator's "123 bytes" in GiB; CUDA's messages are readable already."""
    number, _, unit = size.partition(" ")
    return f"{int(number) / 2**30:.1f} GiB" if unit == "bytes" else size


def memory_in_words(device: torch.device | None = None) -> str:
    """Return how much memory a device has, and how much of a GPU's other processes hold.

    By default of the GPU, if there is one. On the CPU, the process's limit counts (see `limits`).
    """
    device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    words = f"{_capacity(device)} in all"
    if device.type != "cuda":
        return words
    try:
        free, total = torch.cuda.mem_get_info(device)
    except RuntimeError:  # a GPU too full to be asked
        return words
    others = total - free - torch.cuda.memory_reserved(device)
    if others < total * _LITTLE:
        return words
    return f"{words}, {others / 2**30:.1f} GiB of it held by other processes"


def _capacity(device: torch.device) -> str:
    """Return the device's memory; on the CPU, the process's limit."""
    if device.type == "cuda":
        total = torch.cuda.get_device_properties(device).total_memory
    else:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        allowed, _ = resource.getrlimit(resource.RLIMIT_DATA)
        if allowed != resource.RLIM_INFINITY:
            total = min(total, allowed)
    return f"{total / 2**30:.1f} GiB"
