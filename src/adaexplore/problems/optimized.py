"""A captured module, and the winner of its search as a module in its place."""

from __future__ import annotations

import inspect
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from adaexplore.core.problem import Access, Problem
from adaexplore.problems.graph_source import state_of
from adaexplore.problems.value_tree import ValueTree, bound
from adaexplore.runtime.interface import Write, write_back
from adaexplore.sandbox.user.imports import make_importable
from adaexplore.sandbox.user.user_code import Instance, Stored, import_file

TensorForm = tuple[torch.Size, torch.dtype, torch.device | None]
"""Shape, dtype and device of a tensor; no device for a number, which goes with any."""


def form_of(tensor: Tensor) -> TensorForm:
    """Return the form of a tensor."""
    device = tensor.device if tensor.dim() or tensor.is_cuda else None
    return tensor.shape, tensor.dtype, device


@dataclass(frozen=True, slots=True)
class Captured:
    """A live module as a problem, with what turns the winner into a module again.

    `given` and `returned` are the structures of a call's arguments and of its result; `forms` are
    those of the tensors of each example call. Of tensors that a call writes to, candidates return
    new values after the other results.
    """

    problem: Problem
    module: nn.Module
    given: ValueTree
    returned: ValueTree
    forms: tuple[tuple[TensorForm, ...], ...]
    writes: tuple[Write, ...] = ()

    def optimized(self, source: str, folder: Path) -> Optimized:
        """Return the candidate in `source` (class `ModelNew`) as a module like the captured one.

        It holds the weights that the captured module has now. `source` is written to `folder` and
        imported into this process: it must be a candidate that the judge has verified.
        """
        stored = Stored(self.problem.weights, self.problem.weights_digest).load()
        with own_randomness():
            instance = Instance.load(
                source,
                "ModelNew",
                device=self.problem.device,
                seed=self.problem.seed,
                mode=self.problem.mode,
                folder=folder,
                name="winner",
                access=self.problem.access,
            )
        own = instance.model.state_dict()
        with torch.no_grad():
            for name, tensor in (stored | state_of(self.module)).items():
                if name in own and own[name].shape == tensor.shape:  # as the judge gives weights
                    own[name].copy_(tensor)
        origin = _Origin(instance.module.__name__, source, self.problem.access)
        return Optimized(instance.model, self, origin)


@dataclass(frozen=True, slots=True)
class _Origin:
    """The Python module of a candidate, by which a pickle finds its class in another process."""

    name: str
    source: str
    access: Access

    def import_again(self) -> None:
        """Import the source unless this process has done so."""
        if self.name not in sys.modules:
            file = Path(tempfile.mkdtemp(prefix="adaexplore-winner-")) / f"{self.name}.py"
            file.write_text(self.source, encoding="utf-8")
            make_importable(self.access)
            import_file(self.name, file, self.access.file)


class Optimized(nn.Module):
    """A verified candidate in the place of the module that it was found for.

    It takes the same arguments and returns the same structure, and its state dict has the names of
    the candidate's own. Its weights require no gradient, unless it was judged with its backward
    pass. A call raises `ValueError` for other
    arguments than the example calls, for tensors of other forms, and once weights were moved or
    cast: nobody verified the candidate on them. It raises `RuntimeError` where a gradient or
    another mode is asked for.
    """

    def __init__(self, model: nn.Module, captured: Captured, origin: _Origin) -> None:
        super().__init__()
        self._trains = captured.problem.checks.backward
        self.model = model if self._trains else model.requires_grad_(False)
        self.training = captured.module.training
        self._verified_in_training = captured.module.training
        self._origin = origin
        self._signature = _without_annotations(inspect.signature(captured.module.forward))
        self._given = captured.given
        self._returned = captured.returned
        self._forms = captured.forms
        self._writes = captured.writes
        self._weight_forms = _forms_of(model)
        self._moved = ""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the candidate as the module is called."""
        return self.compute(self.checked(args, kwargs))

    def checked(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
        """Return the tensors of a call; raise, as a call does, where it was not verified."""
        tensors, given = ValueTree.split(bound(self._signature, args, kwargs))
        if given != self._given:
            raise ValueError("verified for the arguments of the example calls, not for these")
        self._refuse_other_forms(tuple(map(form_of, tensors)))
        self._refuse_other_uses(tensors)
        return tensors

    def compute(self, tensors: Sequence[Tensor]) -> Any:
        """Return the result of a call with the tensors that `checked` returned."""
        with nullcontext() if self._trains else torch.no_grad():
            outputs = self.model(*tensors)
        found = [outputs] if isinstance(outputs, Tensor) else list(outputs)
        with torch.no_grad():
            found = write_back(self._writes, tensors, found)
        return self._returned.join(found)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state under the names that the captured module has."""
        return self.model.state_dict(*args, **kwargs)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in [n for n in state_dict if n.startswith(prefix)]:
            state_dict[f"{prefix}model.{name.removeprefix(prefix)}"] = state_dict.pop(name)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _apply(self, fn: Any, recurse: bool = True) -> Optimized:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        now = _forms_of(self.model)
        changed = [name for name, form in self._weight_forms.items() if now.get(name) != form]
        self._moved = f"{changed[0]} was moved or cast" if changed else ""
        return self

    def _refuse_other_forms(self, forms: tuple[TensorForm, ...]) -> None:
        if forms in self._forms:
            return
        shapes = [[shape for shape, *_ in each] for each in self._forms]
        given = [shape for shape, *_ in forms]
        words = _forms_in_words if given in shapes else _shapes_in_words
        verified = " or ".join(map(words, self._forms))
        raise ValueError(f"verified for tensors of {verified}, not of {words(forms)}")

    def _refuse_other_uses(self, tensors: list[Tensor]) -> None:
        if self._moved:
            raise ValueError(
                f"{self._moved}, and nobody verified that; optimize the module as it is to run"
            )
        if self.training != self._verified_in_training:
            mode = "train" if self._verified_in_training else "eval"
            raise RuntimeError(f"verified in the mode of .{mode}(); call .{mode}() on it")
        if not self._trains:
            _refuse_gradients(self.model, tensors)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _restored, (self._origin,), self.__dict__


def _restored(origin: _Origin) -> Optimized:
    """Return an empty module whose state may be unpickled: its candidate's class can be found."""
    origin.import_again()
    return Optimized.__new__(Optimized)


def for_inference(model: nn.Module) -> nn.Module:
    """Return a candidate's model with frozen weights, which raises where gradients are asked for.

    Otherwise, kernels would leave them out without a word.
    """
    model.requires_grad_(False)
    model.register_forward_pre_hook(_refuse_gradients_of_call, with_kwargs=True)
    return model


def _refuse_gradients_of_call(
    model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    tensors, _ = ValueTree.split((args, kwargs))
    _refuse_gradients(model, tensors)


def _refuse_gradients(model: nn.Module, tensors: list[Tensor]) -> None:
    if torch.is_grad_enabled() and any(t.requires_grad for t in (*tensors, *model.parameters())):
        raise RuntimeError(
            "an optimized module computes no gradients: call it under torch.no_grad(), or on "
            "inputs and with weights that require none"
        )


def _without_annotations(signature: inspect.Signature) -> inspect.Signature:
    """Return a signature that can be pickled: annotations may name local classes."""
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return signature.replace(parameters=bare, return_annotation=signature.empty)


def _forms_of(model: nn.Module) -> dict[str, TensorForm]:
    return {name: form_of(tensor) for name, tensor in model.state_dict().items()}


@contextmanager
def own_randomness() -> Iterator[None]:
    """Put the random generators of this process back afterwards."""
    numpy = sys.modules.get("numpy")
    python, drawn = random.getstate(), numpy.random.get_state() if numpy else None
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(python)
            if numpy:
                numpy.random.set_state(drawn)


def _shapes_in_words(forms: tuple[TensorForm, ...]) -> str:
    return ", ".join("x".join(map(str, shape)) or "scalar" for shape, *_ in forms)


def _forms_in_words(forms: tuple[TensorForm, ...]) -> str:
    return ", ".join(
        f"{'x'.join(map(str, shape)) or 'scalar'} {str(dtype).partition('.')[2]} on {device}"
        for shape, dtype, device in forms
    )
