"""The script of a user whose function makes a model and its calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from adaexplore.core.errors import BadInputError
from adaexplore.problems.written import in_one_line
from adaexplore.sandbox.user.user_code import import_file, is_out_of_memory, memory_in_words

_NAME = "adaexplore_model_script"


def made_by(place: str) -> tuple[nn.Module, Any]:
    """Return the model and the calls that `script.py:make` makes.

    The script is run in this process, and may import what lies beside it. Raises `BadInputError`,
    in one line, for a place without such a function, and where the script raises.
    """
    file, _, function = place.rpartition(":")
    if not file or not function.isidentifier():
        raise BadInputError(f"{place}: write FILE.py:FUNCTION, as in script.py:make")
    path = Path(file).resolve()
    if not path.is_file():
        raise BadInputError(f"{file}: no such file")
    sys.path.insert(0, str(path.parent))
    module = _told(file, lambda: import_file(_NAME, path, str(path)))
    make = getattr(module, function, None)
    if not callable(make):
        raise BadInputError(f"{file}: defines no function {function}")
    made = _told(place, make)
    match made:
        case (nn.Module() as model, calls):
            return model, calls
    raise BadInputError(
        f"{place} returned a {type(made).__name__}; return (model, calls), a module and its calls"
    )


def _told(place: str, run: Callable[[], Any]) -> Any:
    try:
        return run()
    except (Exception, SystemExit) as error:  # whatever the user's script raises
        if is_out_of_memory(error):
            raise BadInputError(f"{place} ran out of memory ({memory_in_words()})") from error
        raise BadInputError(f"{place} raised {in_one_line(error)}") from error
