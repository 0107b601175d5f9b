"""The parts that the fields of `Config` are declared with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

Group = Literal["problem", "model", "search", "campaign", "limits", "output"]


def option(group: Group, default: Any, description: str, *, metavar: str = "", **kw: Any) -> Any:
    """Declare a field that is an option of its own on the command line."""
    extra: dict[str, Any] = {"group": group, "option": True, "metavar": metavar}
    return Field(default, description=description, json_schema_extra=extra, **kw)


def setting(group: Group, default: Any, description: str, **kw: Any) -> Any:
    """Declare a field that only `--set` changes on the command line."""
    extra: dict[str, Any] = {"group": group, "option": False}
    return Field(default, description=description, json_schema_extra=extra, **kw)


def split(value: Any) -> Any:
    """Return the parts of a text that commas separate, and a path as the only part."""
    if isinstance(value, Path):
        return [value]
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


def joined(value: Any) -> Any:
    """Return a list as one text with commas; any other value unchanged."""
    return ",".join(value) if isinstance(value, (list, tuple)) else value


def plain(value: Any) -> Any:
    """Return a path as text; any other value unchanged."""
    return str(value) if isinstance(value, Path) else value


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().resolve()) if path else ""


PathText = Annotated[str, BeforeValidator(plain), AfterValidator(_absolute)]
"""An absolute path, empty for none."""

JoinedText = Annotated[str, BeforeValidator(joined)]
"""A text; a list becomes one with commas."""


def _ray(address: str) -> str:
    host, _, port = address.rpartition(":")
    if address not in ("", "auto") and not (host and port.isdigit() and "/" not in host):
        raise ValueError("write the address as HOST:PORT, or auto")
    return address


RayAddress = Annotated[str, AfterValidator(_ray)]
"""The address of a Ray cluster, `auto` for that of this machine, empty for none."""


def _database(url: str) -> str:
    parts = urlsplit(url)
    if url and (parts.scheme != "postgresql" or not parts.path.strip("/") or parts.fragment):
        raise ValueError("write the database as postgresql://USER@HOST/NAME")
    if parts.password is not None:
        raise ValueError("leave the password to PGPASSWORD or ~/.pgpass, since the URL is recorded")
    return url


def _cache_place(text: str) -> str:
    if text in ("", "off"):
        return ""
    if "://" in text:
        return _database(text)
    return text if text == "on" else _absolute(text)


CachePlace = Annotated[str, BeforeValidator(plain), AfterValidator(_cache_place)]
"""The place of a shared cache: empty for none, "on" for the user's own, a file, or a URL."""

DatabaseUrl = Annotated[str, AfterValidator(_database)]
"""The URL of a PostgreSQL database without a password, empty for none."""
