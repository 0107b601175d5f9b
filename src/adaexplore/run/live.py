"""Live modules: captured as a problem before a run, and optimized by its winner afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Problem
from adaexplore.core.settings.config import Config
from adaexplore.run.session import setup_of

if TYPE_CHECKING:
    from torch import nn

    from adaexplore.problems.optimized import Captured

_OF_THE_MODULE = {
    "device": "move the module instead: module.to(device)",
    "mode": "call module.train() or module.eval() before",
}
TRAINING = (
    "the module is in training mode: dropout drops and batch norm uses batch statistics; "
    "for inference, call module.eval() before"
)


def is_module(value: object) -> bool:
    """Return True for an `nn.Module`; loads no torch."""
    return any(
        base.__module__ == "torch.nn.modules.module" and base.__name__ == "Module"
        for base in type(value).__mro__
    )


def capture_module(
    module: nn.Module, inputs: Any, kwargs: Any, config: Config, folder: Path
) -> Captured:
    """Capture a module with example inputs as a problem; its files go to `folder`.

    Raises `BadProblemError` for a module that cannot be captured, and `BadInputError` for options
    that do not fit it.
    """
    from adaexplore.problems.live import capture

    for name, remedy in _OF_THE_MODULE.items():
        if name in config.model_fields_set:
            raise BadInputError(f"{name} is the module's own; {remedy}")
    captured = capture(
        module,
        folder=folder,
        calls=_calls(inputs, kwargs),
        language=config.language,
        checks=config.checks,
        seed=config.problem_seed,
    )
    problem = captured.problem
    setup = setup_of(config.model_copy(update={"device": problem.device}))
    problem = replace(problem, language=setup.language, target=setup.target)
    return replace(captured, problem=problem)


def module_of(problem: Problem, source: str, folder: Path) -> nn.Module:
    """Return the winner of a problem from a file as a module, with the reference's weights.

    `source` is written to `folder` and imported into this process.
    """
    import torch

    from adaexplore.problems.optimized import for_inference
    from adaexplore.sandbox.user.user_code import Instance

    with torch.random.fork_rng():
        reference = Instance.of(problem, folder)
        winner = Instance.load(
            source,
            "ModelNew",
            device=problem.device,
            seed=problem.seed,
            mode=problem.mode,
            folder=folder,
            init=reference.init,
            name="winner",
            access=problem.access,
        )
    given, own = reference.model.state_dict(), winner.model.state_dict()
    with torch.no_grad():
        for name in own.keys() & given.keys():
            if own[name].shape == given[name].shape:  # as the judge gives weights
                own[name].copy_(given[name])
    return winner.model if problem.checks.backward else for_inference(winner.model)


def _calls(inputs: Any, kwargs: Any) -> list[tuple[tuple[Any, ...], Mapping[str, Any]]]:
    """Return the positional and the named arguments of each example call."""
    positional = [_arguments(call) for call in inputs] if isinstance(inputs, list) else None
    named = list(kwargs) if isinstance(kwargs, list) else None
    if positional is None:
        positional = [_arguments(inputs)] * (len(named) if named else 1)
    if named is None:
        named = [kwargs or {}] * len(positional)
    if len(positional) != len(named):
        raise BadInputError(
            f"inputs has {len(positional)} calls and kwargs has {len(named)}: give both for each"
        )
    return list(zip(positional, named, strict=True))


def _arguments(call: Any) -> tuple[Any, ...]:
    return call if isinstance(call, tuple) else (call,)
