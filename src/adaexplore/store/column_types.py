"""Types of columns that read back what was written, on every database."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator

_ESCAPE, _NUL, _ITSELF = "\x1a", "\x1a0", "\x1a1"


class Words(TypeDecorator[str]):
    """Any text. PostgreSQL has no NUL in texts: there, it is written `SUB 0`, and SUB `SUB 1`.

    Texts with neither character are stored as they are.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text to store."""
        if value is None or dialect.name == "sqlite":
            return value
        return value.replace(_ESCAPE, _ITSELF).replace("\0", _NUL)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text that was stored."""
        if value is None or dialect.name == "sqlite":
            return value
        return value.replace(_NUL, "\0").replace(_ITSELF, _ESCAPE)


class Json(TypeDecorator[Any]):
    """Plain data as JSON in a text, since PostgreSQL's type has neither infinities nor NUL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Return the text to store."""
        return None if value is None else json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002
        """Return the data that was stored."""
        return None if value is None else json.loads(value)
