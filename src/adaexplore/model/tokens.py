"""Greedy tokens of decoders: the original chooses them, and others follow and give their logits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from adaexplore.model.calls import ModelCall, raising_of
from adaexplore.runtime.values import static_layer

STEPS = 64
_IDS = "input_ids"


@dataclass(frozen=True, slots=True)
class Greedy:
    """The tokens of each step (steps x batch), and the logits that they are chosen from."""

    tokens: Tensor
    logits: Tensor

    def agreeing(self, other: Greedy) -> int:
        """Return the number of steps in which another model chooses the same next tokens."""
        return int((other.logits.argmax(-1) == self.logits.argmax(-1)).all(-1).sum())


class _Following:
    """A processor of `generate` that allows at each step the given token alone."""

    def __init__(self, tokens: Tensor, begun: int) -> None:
        self._tokens = tokens
        self._begun = begun

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        chosen = self._tokens[input_ids.shape[1] - self._begun]
        return torch.full_like(scores, -torch.inf).scatter_(1, chosen[:, None], 0.0)


def can_generate(model: nn.Module, call: ModelCall) -> bool:
    """Return whether a model is a decoder of `transformers`, and a call begins with tokens."""
    return (
        callable(getattr(model, "generate", None))
        and getattr(model, "main_input_name", "") == _IDS
        and _ids(call) is not None
    )


def greedy(model: nn.Module, call: ModelCall, follow: Tensor | None = None) -> Greedy:
    """Return the tokens after those of a call, and their logits; `follow` has tokens to choose.

    With a cache of fixed size among the arguments, the model goes on with it; else it generates.
    Raises `BadInputError` where the model raises.
    """
    with raising_of(call.name), torch.no_grad():
        if any(map(_is_static, call.kwargs.values())):
            logits = torch.stack([*_steps(model, call.copied(), follow)])
        else:
            logits = _generated(model, call, follow)
    return Greedy(logits.argmax(-1) if follow is None else follow, logits)


def _is_static(value: Any) -> bool:
    return static_layer(value, 0) is not None


def _ids(call: ModelCall) -> Tensor | None:
    ids = call.kwargs.get(_IDS, call.args[0] if call.args else None)
    is_ids = isinstance(ids, Tensor) and ids.dim() == 2 and not ids.is_floating_point()
    return ids if is_ids else None


def _generated(model: Any, call: ModelCall, follow: Tensor | None) -> Tensor:
    ids = _ids(call)
    assert ids is not None
    processors = [] if follow is None else [_Following(follow, ids.shape[1])]
    made = model.generate(
        ids,
        max_new_tokens=STEPS,
        min_new_tokens=STEPS,
        do_sample=False,
        num_beams=1,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_logits=True,
        logits_processor=processors,
    )
    return torch.stack(made.logits)


def _steps(model: nn.Module, call: ModelCall, follow: Tensor | None) -> Iterator[Tensor]:
    """Yield the logits of the steps for which the cache has room."""
    [cache] = filter(_is_static, call.kwargs.values())
    kwargs = dict(call.kwargs)
    room = cache.layers[0].keys.shape[-2] - int(cache.get_seq_length())
    for step in range(min(STEPS, room)):
        logits = model(*call.args, **kwargs).logits[:, -1]
        yield logits
        token = logits.argmax(-1) if follow is None else follow[step]
        kwargs[_IDS] = token[:, None]
