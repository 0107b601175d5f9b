"""A verified kernel in the place of the modules of a model.

`apply(model)` puts it in, `undo(model)` takes it out. Calls that the guards refuse run the original
module: `refusals()` counts them, by reason.
"""

from adaexplore.ship.package.kernel import UnusableKernelError
from adaexplore.ship.package.loaded import SPEC
from adaexplore.ship.package.refusals import refusals, reset_refusals
from adaexplore.ship.package.replace import Applied, apply, undo

__all__ = [
    "SPEC",
    "Applied",
    "UnusableKernelError",
    "apply",
    "refusals",
    "reset_refusals",
    "undo",
]
