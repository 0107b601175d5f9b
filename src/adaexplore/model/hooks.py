"""Forward hooks on all modules of a model and on its runs, gone after the body in any case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import nn

from adaexplore.model.cuts import modules_in

Before = Callable[[str, nn.Module, tuple[Any, ...], dict[str, Any]], None]
After = Callable[[str], None]


def _nothing(path: str) -> None:
    del path


@contextmanager
def hooked(model: nn.Module, before: Before, after: After = _nothing) -> Iterator[None]:
    """Call `before` and `after` around every call of every module and run, by its path.

    `before` comes first among the hooks of a module and `after` last, also where the call raises.
    """

    def enter(path: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        before(path, module, args, kwargs)

    def leave(path: str, *_: Any) -> None:
        after(path)

    with ExitStack() as hooks:
        for path, module in modules_in(model):
            handles = (
                module.register_forward_pre_hook(
                    partial(enter, path), prepend=True, with_kwargs=True
                ),
                module.register_forward_hook(partial(leave, path), always_call=True),
            )
            for handle in handles:
                hooks.callback(handle.remove)
        yield
