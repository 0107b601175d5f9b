"""The command line. Importing it loads no command: Ctrl-C at that time would end in a traceback."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from adaexplore.core.lazy import lazy_names

if TYPE_CHECKING:
    from adaexplore.cli.terminal.one_line import run_app as run_app
else:
    __all__, __getattr__ = lazy_names(__name__, __file__)
    __all__ += ["main"]


_INTERRUPTED = 130


def main() -> None:
    """Run a command; every expected failure is one line on stderr and an exit code.

    0: done (`evaluate`: any verdict). 1: a finding, as the command's help says. 2: bad input.
    3: infrastructure trouble. 130: interrupted. 141: nobody reads the output any more. SIGTERM, as
    at the end of a job's time, interrupts a command as Ctrl-C does; the process ends by it then.
    """
    terminated = False

    def terminate(*_: Any) -> None:
        nonlocal terminated
        terminated = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, terminate)
    try:
        _show_any_text()
        _hide_what_libraries_tell()
        from adaexplore.cli.app import app
        from adaexplore.cli.terminal.one_line import run_app

        run_app(app, "adaexplore")
    except KeyboardInterrupt:  # before or after the command, which handles its own
        code: Any = _INTERRUPTED
    except SystemExit as end:
        code = end.code
    if terminated and code == _INTERRUPTED:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    sys.exit(code)


def _show_any_text() -> None:
    """Show `?` for a character that the encoding of a terminal or a pipe does not have."""
    for stream in (sys.stdout, sys.stderr):  # None, or a user's object, where Python is embedded
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="replace")


def _hide_what_libraries_tell() -> None:
    """Silence what libraries tell programmers, which is no news to users."""
    import logging
    import warnings

    if not sys.warnoptions:
        warnings.simplefilter("ignore")
        logging.getLogger().addHandler(logging.NullHandler())
