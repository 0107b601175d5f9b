"""The most telling line of a message."""

from __future__ import annotations

import re

MOST_CHARS = 500


def headline(message: str) -> str:
    """Return the most telling line of a message.

    That is a compiler's first "error:"; the line after the excerpt in a message of Triton's, which
    begins with a bare position and an excerpt of the kernel; else the first line.
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if not lines:
        return ""
    errors = [line for line in lines if "error:" in line]
    triton = lines[-1:] if re.fullmatch(r"at \d+:\d+:", lines[0]) else []
    return (errors or triton or lines)[0][:MOST_CHARS]
