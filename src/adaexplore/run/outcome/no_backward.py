"""Code for winners that lose gradients: a backward pass through their outputs raises.

The text of `refusing_backward` is written into files, so it imports all that it needs.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def refusing_backward(forward: "Callable[..., Any]") -> "Callable[..., Any]":
    """Wrap the `forward` of a module that loses gradients: a backward pass through it raises."""
    import functools

    import torch
    from torch.utils import _pytree as pytree

    class NoBackward(torch.autograd.Function):
        @staticmethod
        def forward(_: "Any", output: "Any", *__: "Any") -> "Any":
            return output.detach()

        @staticmethod
        def backward(*_: "Any") -> "Any":
            raise RuntimeError("this kernel loses gradients: train with the original module")

    @functools.wraps(forward)
    def call(self: "Any", *args: "Any", **kwargs: "Any") -> "Any":
        outputs = forward(self, *args, **kwargs)
        if not torch.is_grad_enabled():
            return outputs
        given = [*pytree.tree_leaves((args, kwargs)), *self.parameters()]
        leaf = next((t for t in given if isinstance(t, torch.Tensor) and t.requires_grad), None)

        def guarded(output: "Any") -> "Any":
            if not (output.is_floating_point() or output.is_complex()):
                return output
            return NoBackward.apply(output, leaf)  # type: ignore[no-untyped-call]

        return outputs if leaf is None else pytree.tree_map_only(torch.Tensor, guarded, outputs)

    return call
