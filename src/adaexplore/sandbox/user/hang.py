"""A limit on each call into a reference, which may hang."""

from __future__ import annotations

import faulthandler
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

_FRAME = re.compile(r'File "[^"\n]*_[0-9a-f]{12}\.py", line (?P<line>\d+) in (?P<what>\S+)')
_RENEWED = 0.1  # of the limit may have passed when a call begins within a body that has the limit
_limit_s: float | None = None
_since: float | None = None  # when the limit that is in force began


def limit_calls(seconds: float) -> None:
    """End this process when a call into its reference takes longer than `seconds` from now on.

    Every thread's stack is then in the process's log.
    """
    global _limit_s
    _limit_s = seconds


@contextmanager
def limited() -> Iterator[None]:
    """Run the body within the limit of this process, if there is one.

    To begin and to end a limit starts and joins a thread. Around a body of many short calls, which
    are limited themselves, it is begun once, and again only by a call that comes late.
    """
    global _since
    began, now = _since, time.monotonic()
    if _limit_s is None or (began is not None and now - began < _RENEWED * _limit_s):
        yield
        return
    _since = now
    faulthandler.dump_traceback_later(_limit_s, exit=True)
    try:
        yield
    finally:
        if began is None:
            _since = None
            faulthandler.cancel_dump_traceback_later()


def hung_at(log: str) -> str | None:
    """Return where the user's code hung, in words, by the log of a process that the limit ended.

    None where the log tells of no such end; empty where it names no line of the user's.
    """
    if "Timeout (" not in log:
        return None
    found = _FRAME.search(log[log.rindex("Timeout (") :])
    return f"line {found['line']}, in {found['what']}" if found else ""
