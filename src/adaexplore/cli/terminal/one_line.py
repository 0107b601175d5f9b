"""Ends of a program: an exit code, and one line on stderr for every expected failure."""

from __future__ import annotations

import errno
import os
import sys
from functools import cache
from typing import Any, NoReturn

import typer
from typer.main import get_command

from adaexplore.core.errors import AdaExploreError, BadInputError, InfrastructureError

CLOSED_PIPE = 141
"""The exit code where nobody reads the output any more, as a shell shows SIGPIPE."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_USAGE_ERROR: Any = typer.BadParameter.__base__  # Typer exports no other name for it


def run_app(app: typer.Typer, program: str) -> NoReturn:
    """Run a command and exit."""
    try:
        code = _command(app)(prog_name=program, standalone_mode=False)
        if sys.stdout:
            sys.stdout.flush()
    except AdaExploreError as error:
        print(f"{program}: {error}", file=sys.stderr)
        code = error.exit_code
    except _USAGE_ERROR as error:
        message = error.format_message()
        is_help = "\n" in message  # a group of commands that got none
        print(message if is_help else f"{program}: {_mended(message, error.ctx)}", file=sys.stderr)
        code = BadInputError.exit_code
    except SystemExit as end:  # so Typer and Rich end at a closed pipe, with 1
        code = CLOSED_PIPE if isinstance(end.__context__, BrokenPipeError) else end.code
    except OSError as error:
        code = _code_of_unwritten(error, program)
    sys.exit(code)


@cache
def _command(app: typer.Typer) -> Any:
    """Return a program's command: made once, for those who run several in one process."""
    return get_command(app)


def _code_of_unwritten(error: OSError, program: str) -> int:
    """Return the exit code where output could not be written; raise any other error again."""
    if not isinstance(error, BrokenPipeError) and error.errno not in _FULL:
        raise error
    try:
        sys.stdout.flush()
    except OSError:  # the interpreter would try once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return CLOSED_PIPE
    place = f" {error.filename}" if error.filename else ""
    print(f"{program}: cannot write{place}: {error.strerror}; free some space", file=sys.stderr)
    return InfrastructureError.exit_code


def _mended(message: str, ctx: Any) -> str:
    """Return what Typer says of a command line, and where its help is."""
    message = message.replace("Value error, ", "").rstrip(".")  # the words are pydantic's
    where = f" ({ctx.command_path} --help)" if ctx else ""
    return f"{message[:1].lower()}{message[1:]}{where}"
