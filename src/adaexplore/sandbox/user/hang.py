"""A limit on each call into a reference, which may hang."""

from __future__ import annotations

import faulthandler
import re
from collections.abc import Iterator
from contextlib import contextmanager

_FRAME = re.compile(r'File "[^"\n]*_[0-9a-f]{12}\.py", line (?P<line>\d+) in (?P<what>\S+)')
_limit_s: float | None = None


def limit_calls(seconds: float) -> None:
    """End this process when a call into its reference takes longer than `seconds` from now on.

    Every thread's stack is then in the process's log.
    """
    global _limit_s
    _limit_s = seconds


@contextmanager
def limited() -> Iterator[None]:
    """Run the body within the limit of this process, if there is one."""
    if _limit_s is None:
        yield
        return
    faulthandler.dump_traceback_later(_limit_s, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def hung_at(log: str) -> str | None:
    """Return where the user's code hung, in words, by the log of a process that the limit ended.

    None where the log tells of no such end; empty where it names no line of the user's.
    """
    if "Timeout (" not in log:
        return None
    found = _FRAME.search(log[log.rindex("Timeout (") :])
    return f"line {found['line']}, in {found['what']}" if found else ""
