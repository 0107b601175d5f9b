"""Answers that are a function: a module around `kernel_function(x, weight, ...)`.

The module holds the reference's parameters, and finds the arguments of the function as
`arguments` says when it is constructed; it fails where an argument has no counterpart.
"""

from __future__ import annotations

import inspect
import textwrap

from adaexplore.problems.benchmarks import arguments

FUNCTION = "kernel_function"

_WRAPPER = """{source}


# From here on: a module around kernel_function, written by `adaexplore bench`.


def _finder():
{finder}
    return NamedArguments


def _reference():
{reference}
    return Model


class ModelNew(_reference()):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._arguments = _finder()(kernel_function, super().__init__, super().forward, args)
        self._arguments.find(self)

    def forward(self, *inputs):
        positional, named = self._arguments.of_call(self, inputs)
        return kernel_function(*positional, **named)
"""


def bound(source: str, reference: str) -> str:
    """Return the source with a `ModelNew` that calls its `kernel_function`."""
    finder = inspect.getsource(arguments).replace("from __future__ import annotations\n", "")
    return _WRAPPER.format(
        source=source,
        finder=textwrap.indent(finder, "    "),
        reference=textwrap.indent(reference, "    "),
    )
