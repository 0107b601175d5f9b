"""A verified kernel in the place of the modules of a model.

`apply(model)` puts it in, `undo(model)` takes it out. Calls that the guards refuse run the original
module: `refusals()` counts them, by reason. `runs()` counts those of the kernel.
"""

from adaexplore.runtime.counts import refusals, reset_refusals, runs
from adaexplore.runtime.kernel import UnusableKernelError
from adaexplore.runtime.loaded import SPEC
from adaexplore.runtime.replace import Applied, apply, undo

__all__ = [
    "SPEC",
    "Applied",
    "UnusableKernelError",
    "apply",
    "refusals",
    "reset_refusals",
    "runs",
    "undo",
]
