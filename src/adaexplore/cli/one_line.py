"""Ends of a program: an exit code, and one line on stderr for every expected failure."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import typer

from adaexplore.core.errors import AdaExploreError, BadInputError

_USAGE_ERROR: Any = typer.BadParameter.__base__  # Typer exports no other name for it


def run_app(app: typer.Typer, program: str) -> NoReturn:
    """Run a command and exit."""
    try:
        sys.exit(app(prog_name=program, standalone_mode=False))
    except AdaExploreError as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except _USAGE_ERROR as error:
        message = error.format_message()
        is_help = "\n" in message  # a group of commands that got none
        print(message if is_help else f"{program}: {_mended(message, error.ctx)}", file=sys.stderr)
        sys.exit(BadInputError.exit_code)


def _mended(message: str, ctx: Any) -> str:
    """Return what Typer says of a command line, and where its help is."""
    message = message.replace("Value error, ", "").rstrip(".")  # the words are pydantic's
    where = f" ({ctx.command_path} --help)" if ctx else ""
    return f"{message[:1].lower()}{message[1:]}{where}"
