"""A memory as a file that people review and share like code: TOML, one table for each rule."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import tomlkit
from tomlkit.items import String, StringType

from adaexplore.errors import BadInputError
from adaexplore.evaluation import FailureStatus
from adaexplore.rule import Kind, Rule, Signature, Source, Where

FORMAT_VERSION = 1
BUNDLED = "bundled"
"""The name of the memory that comes with the package."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
_TEXTS = ("statement", "reference", "witness", "remedy")


def memory_path(name: str) -> Path:
    """Where a memory lies: the package's own by its name, every other by its path."""
    return Path(str(files("adaexplore.memory") / "bundled.toml")) if name == BUNDLED else Path(name)


def load(path: Path) -> list[Rule]:
    """The rules of a memory, in the file's order.

    Raises `BadInputError`, in one line that names the rule, for a file that is none.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInputError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path} is no memory: {error}") from None
    version = data.pop("format", None)
    if version != FORMAT_VERSION:
        raise BadInputError(
            f"{path} is no memory that can be read: its first line is to be "
            f"`format = {FORMAT_VERSION}`, not {version!r}"
        )
    return [_rule(path, name, table) for name, table in data.items()]


def save(path: Path, rules: Iterable[Rule]) -> None:
    """Writes a memory, sorted by kind and name, in one move: it is whole at every moment."""
    ordered = sorted(rules, key=lambda rule: (get_args(Kind).index(rule.kind), rule.name))
    document = tomlkit.document()
    document.add("format", tomlkit.item(FORMAT_VERSION))
    for rule in ordered:
        document.add(rule.name, _table(rule))
    draft = path.with_name(f"{path.name}.new")
    try:
        draft.write_text(tomlkit.dumps(document), encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise BadInputError(f"cannot write {path}: {error.strerror}") from None


def _table(rule: Rule) -> Any:
    table = tomlkit.table()
    table.add("kind", rule.kind)
    table.add("statement", rule.statement)
    table.add("topics", list(rule.topics))
    table.add("source", rule.source)
    table.add("support", rule.support)
    if rule.tasks:
        table.add("tasks", list(rule.tasks))
    if rule.lift is not None:
        table.add("lift", rule.lift)
    for name in ("holds", "gone"):
        places = [f"{w.triton} {w.target}" for w in getattr(rule, name)]
        if places:
            table.add(name, places)
    signature = tomlkit.inline_table()
    for name in ("status", "type", "symbol", "message"):
        value = getattr(rule.signature, name)
        if value:
            signature.add(name, value)
    table.add("signature", signature)
    for name in ("reference", "witness", "remedy"):
        table.add(name, _code(getattr(rule, name)))
    return table


def _code(text: str) -> String:
    """Source as it is; quoted only where it holds what would end a literal."""
    literal = "'''" not in text and not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)
    if not literal:
        return tomlkit.string(text, multiline=True)
    # A newline right after the opening quotes is not part of the text.
    return String(StringType.MLL, text, "\n" + text, tomlkit.items.Trivia())


def _rule(path: Path, name: str, table: Any) -> Rule:
    def refuse(why: str) -> BadInputError:
        return BadInputError(f"{path}: rule {name!r}: {why}")

    if not _NAME.fullmatch(name):
        raise refuse("a name is made of small letters, digits and hyphens")
    if not isinstance(table, Mapping):
        raise refuse("it is to be a table")
    known = {"kind", *_TEXTS, "topics", "source", "support", "tasks", "lift", "holds", "gone"}
    unknown = sorted(table.keys() - known - {"signature"})
    if unknown:
        raise refuse(f"{unknown[0]!r} is nothing that a rule has")
    for field in _TEXTS:
        if not isinstance(table.get(field), str) or not table[field].strip():
            raise refuse(f"{field!r} is missing or empty")
    if table.get("kind") not in get_args(Kind):
        raise refuse(f"'kind' is to be one of {', '.join(get_args(Kind))}")
    if table.get("source", "import") not in get_args(Source):
        raise refuse(f"'source' is to be one of {', '.join(get_args(Source))}")
    try:
        return Rule(
            name=name,
            kind=table["kind"],
            statement=table["statement"],
            reference=table["reference"],
            witness=table["witness"],
            remedy=table["remedy"],
            signature=_signature(table.get("signature", {})),
            holds=tuple(map(_where, table.get("holds", []))),
            gone=tuple(map(_where, table.get("gone", []))),
            support=int(table.get("support", 1)),
            tasks=tuple(map(str, table.get("tasks", []))),
            source=table.get("source", "import"),
            topics=tuple(map(str, table.get("topics", []))),
            lift=None if table.get("lift") is None else float(table["lift"]),
        )
    except (TypeError, ValueError) as error:
        raise refuse(str(error)) from None


def _signature(data: Mapping[str, Any]) -> Signature:
    if data.get("status") not in get_args(FailureStatus):
        raise ValueError("its signature has no 'status' of a failure")
    return Signature(**{key: str(value) for key, value in data.items()})  # type: ignore[arg-type]


def _where(text: Any) -> Where:
    triton, _, target = str(text).partition(" ")
    if not target:
        raise ValueError(f"{text!r} is to be a version and a target, such as '3.6.0 sm_90'")
    return Where(triton, target)
