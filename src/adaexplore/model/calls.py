"""The calls of a model that a user gives, each run on a copy of its arguments."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from adaexplore.core.errors import BadInputError
from adaexplore.model.caches import register_caches
from adaexplore.problems.value_tree import register_dataclasses
from adaexplore.problems.written import in_one_line
from adaexplore.sandbox.user.user_code import is_out_of_memory, memory_in_words

_FORMS = (
    "inputs is a list of calls, or a dictionary of names and calls; a call is a tuple of arguments "
    "or a dictionary of named arguments"
)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call of a model with a name."""

    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def copied(self) -> ModelCall:
        """Return the call with copies of all arguments: a model may write to a cache.

        Raises `BadInputError` for arguments that cannot be copied.
        """
        try:
            args, kwargs = copy.deepcopy((self.args, dict(self.kwargs)))
        except Exception as error:  # the types of the user's arguments are not known
            raise BadInputError(
                f"call {self.name}: its arguments cannot be copied ({in_one_line(error)}); detach "
                "tensors that have a gradient"
            ) from error
        return ModelCall(self.name, args, kwargs)

    def run(self, model: nn.Module) -> Any:
        """Call the model without gradients; raise `BadInputError`, in one line, where it raises."""
        with raising_of(self.name), torch.no_grad():
            return model(*self.args, **self.kwargs)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> ModelCall:
        """Return a copy of the call with changed tensors."""
        own = self.copied()
        args, kwargs = pytree.tree_map_only(Tensor, change, (own.args, dict(own.kwargs)))
        return ModelCall(self.name, args, kwargs)

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors among the arguments."""
        leaves = pytree.tree_leaves((self.args, dict(self.kwargs)))
        return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


@contextmanager
def raising_of(name: str) -> Iterator[None]:
    """Turn any exception of the body, which runs the user's model, into a `BadInputError`."""
    try:
        yield
    except BadInputError:
        raise
    except Exception as error:  # whatever the module of the user raises
        if is_out_of_memory(error):
            why = f"out of memory ({memory_in_words()})"
            raise BadInputError(f"call {name}: {why}; give smaller inputs") from error
        raise BadInputError(f"call {name}: the model raised {in_one_line(error)}") from error


def calls_of(inputs: Any) -> list[ModelCall]:
    """Return the calls that `inputs` describes, as in `adaexplore.optimize_model`.

    Raises `BadInputError` for any other form.
    """
    given = type(inputs).__name__
    if isinstance(inputs, tuple):
        inputs = [inputs]
    if isinstance(inputs, list):
        inputs = {f"call-{i}": call for i, call in enumerate(inputs, 1)}
    register_caches(inputs)
    register_dataclasses(inputs)
    if not isinstance(inputs, Mapping) or not inputs:
        raise BadInputError(f"inputs is a {given} without calls; {_FORMS}")
    return [_call(str(name), call) for name, call in inputs.items()]


def _call(name: str, call: Any) -> ModelCall:
    if isinstance(call, Mapping):
        return ModelCall(name, (), dict(call))
    if isinstance(call, tuple):
        return ModelCall(name, call, {})
    raise BadInputError(f"call {name} is a {type(call).__name__}; {_FORMS}")
