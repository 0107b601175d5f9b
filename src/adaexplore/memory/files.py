"""A memory as a file that people review and share like code: TOML, one table for each rule.

A rule's two programs are one listing (see `listing`). A reference that several rules share is
written out at the first of them; the others name that rule in `reference_of`. Unchecked rules have
neither reference nor programs.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import tomlkit
from tomlkit.items import String, StringType

from adaexplore.core.errors import BadInputError
from adaexplore.core.files import why_unread, write_whole
from adaexplore.core.problem import LANGUAGES
from adaexplore.core.rule import (
    Gain,
    Kind,
    Matcher,
    Platform,
    Rule,
    Signature,
    Source,
    WitnessStatus,
    unchecked_rule,
)
from adaexplore.memory.listing import listing, programs
from adaexplore.memory.patterns import check_matcher
from adaexplore.memory.unchecked.statements import is_statements, read_sayings, unchecked_rules

BUNDLED = "bundled"
"""The name of the memory that ships with the package."""

_FORMAT = 2
_LANGUAGE = "triton"  # of a rule that names none
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
_CODE = ("reference", "programs")
_ALL_KINDS: tuple[Kind, ...] = get_args(Kind)
_FIELDS = {field.name for field in fields(Rule)} - {"name", "witness", "remedy"}
_FIELDS |= {"reference_of", "programs"}
_UNCHECKED_FIELDS = {"kind", "statement", "source", "support", "tasks"}


def memory_path(name: str) -> Path:
    """Return the path of a memory: of the package's own for `bundled`, else the name itself."""
    return Path(str(files("adaexplore.memory") / "bundled.toml")) if name == BUNDLED else Path(name)


def beliefs() -> list[Rule]:
    """Return false statements that untested memories repeat, each as a rule that holds nowhere.

    A belief's witness is the program that it forbids, which passes on every supported Triton, and
    its remedy is the detour that the belief asks for.
    """
    return load_memory(Path(str(files("adaexplore.memory") / "beliefs.toml")))


def load_memory(path: Path) -> list[Rule]:
    """Return the rules of a memory, in the file's order. A name that ends in .json means JSON.

    Lines `statement||count`, as the published search has them, are unchecked rules.

    Raises `BadInputError`, in one line that names the rule, for a file that is no memory.
    """
    if is_statements(path):
        return unchecked_rules(read_sayings(path))
    try:
        if why := why_unread(path):
            raise BadInputError(f"{path}: {why}; give a memory's file")
        text = path.read_text(encoding="utf-8")
        data = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise BadInputError(f"memory {path}: {error.strerror}") from None
    except ValueError as error:  # invalid TOML, JSON or UTF-8
        raise BadInputError(f"{path} is no memory: {error}") from None
    return from_data(data, str(path))


def save_memory(path: Path, rules: Iterable[Rule]) -> None:
    """Write a memory, sorted by kind and name, atomically."""
    document = tomlkit.document()
    for name, value in to_data(rules).items():
        document.add(name, _table(value) if isinstance(value, dict) else tomlkit.item(value))
    write_whole(path, tomlkit.dumps(document))


def memory_to_json(rules: Iterable[Rule]) -> str:
    """Return the JSON text of a memory, which `load_memory` reads too."""
    return json.dumps(to_data(rules), indent=1, ensure_ascii=False) + "\n"


def to_data(rules: Iterable[Rule]) -> dict[str, Any]:
    """Return a memory as plain data: its format, and a table for each rule, by kind and name."""
    ordered = sorted(rules, key=lambda rule: (_ALL_KINDS.index(rule.kind), rule.name))
    first: dict[str, str] = {}
    for rule in ordered:
        first.setdefault(rule.reference, rule.name)
    return {"format": _FORMAT} | {
        rule.name: _plain(rule, first[rule.reference]) for rule in ordered
    }


def from_data(data: Any, place: str) -> list[Rule]:
    """Return the rules of plain data, the inverse of `to_data`.

    Raises `BadInputError`, in one line that begins with `place`, for data that is no memory.
    """
    version = data.get("format") if isinstance(data, Mapping) else None
    if version != _FORMAT:
        raise BadInputError(
            f"{place} is no memory that can be read: its first line is to be "
            f"`format = {_FORMAT}`, not {version!r}"
        )
    return [_rule(place, name, table, data) for name, table in data.items() if name != "format"]


def _plain(rule: Rule, first: str) -> dict[str, Any]:
    """Return a rule's table without empty fields; `first` is the first rule of its reference."""
    told = {
        "kind": rule.kind,
        "statement": rule.statement,
        "topics": list(rule.topics),
        "source": rule.source,
        "support": rule.support,
        "tasks": list(rule.tasks),
    }
    return _filled(told | (_evidence(rule, first) if rule.is_checked else {}))


def _evidence(rule: Rule, first: str) -> dict[str, Any]:
    own = first == rule.name
    return {
        "language": "" if rule.language == _LANGUAGE else rule.language,
        "lift": rule.lift,
        "lift_tries": rule.lift_tries or None,
        "holds": list(map(str, rule.holds)),
        "gone": list(map(str, rule.gone)),
        "gains": {str(gain.where): [gain.speedup, *gain.speedup_ci] for gain in rule.gains},
        "signature": _filled(asdict(rule.signature)),
        "matcher": None if rule.matcher is None else _filled(asdict(rule.matcher)),
        "reference": rule.reference if own else "",
        "reference_of": "" if own else first,
        "programs": listing(rule.witness, rule.remedy),
    }


def _filled(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table without its empty values; zero is not empty."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in table.items()
        if value not in ((), [], {}, "", None)
    }


def _table(rule: Mapping[str, Any]) -> Any:
    table = tomlkit.table()
    for name, value in rule.items():
        if isinstance(value, Mapping):
            table.add(name, _inline(value))
        else:
            table.add(name, _code(value) if name in _CODE else value)
    return table


def _inline(data: Mapping[str, Any]) -> Any:
    table = tomlkit.inline_table()
    for name, value in data.items():
        table.add(name, _inline(value) if isinstance(value, Mapping) else value)
    return table


def _code(text: str) -> String:
    """Return source as a literal string; as a quoted string where a literal cannot hold it."""
    literal = "'''" not in text and not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)
    if not literal:
        return tomlkit.string(text, multiline=True)
    # A newline right after the opening quotes is not part of the text.
    return String(StringType.MLL, text, "\n" + text, tomlkit.items.Trivia())


def _rule(place: str, name: str, table: Any, memory: Mapping[str, Any]) -> Rule:
    def refuse(why: str) -> BadInputError:
        return BadInputError(f"{place}: rule {name!r}: {why}")

    if not _NAME.fullmatch(name):
        raise refuse("a name is made of small letters, digits and hyphens")
    if not isinstance(table, Mapping):
        raise refuse("it is to be a table")
    unknown = sorted(table.keys() - _FIELDS)
    if unknown:
        raise refuse(f"a rule has no field {unknown[0]!r}")
    if table.get("kind") not in _ALL_KINDS:
        raise refuse(f"'kind' is to be one of {', '.join(_ALL_KINDS)}")
    unchecked = table["kind"] == "unchecked"
    for field in ("statement",) if unchecked else ("statement", "programs"):
        if not isinstance(table.get(field), str) or not table[field].strip():
            raise refuse(f"{field!r} is missing or empty")
    if unchecked and (beyond := sorted(table.keys() - _UNCHECKED_FIELDS)):
        raise refuse(f"an unchecked rule has no {beyond[0]!r}")
    if table.get("language", _LANGUAGE) not in LANGUAGES:
        raise refuse(f"'language' is to be one of {', '.join(LANGUAGES)}")
    if table.get("source", "import") not in get_args(Source):
        raise refuse(f"'source' is to be one of {', '.join(get_args(Source))}")
    try:
        if unchecked:
            return unchecked_rule(
                name,
                table["statement"],
                support=int(table.get("support", 1)),
                source=table.get("source", "import"),
                tasks=tuple(map(str, table.get("tasks", []))),
            )
        witness, remedy = programs(table["programs"])
        return Rule(
            name=name,
            kind=table["kind"],
            statement=table["statement"],
            reference=_reference(table, memory),
            witness=witness,
            remedy=remedy,
            signature=_signature(table.get("signature", {})),
            holds=tuple(map(_where, table.get("holds", []))),
            gone=tuple(map(_where, table.get("gone", []))),
            support=int(table.get("support", 1)),
            tasks=tuple(map(str, table.get("tasks", []))),
            source=table.get("source", "import"),
            topics=tuple(map(str, table.get("topics", []))),
            lift=None if table.get("lift") is None else float(table["lift"]),
            lift_tries=int(table.get("lift_tries", 0)),
            matcher=None if "matcher" not in table else _matcher(table["matcher"]),
            gains=tuple(_gain(where, numbers) for where, numbers in table.get("gains", {}).items()),
            language=table.get("language", _LANGUAGE),
        )
    except (TypeError, ValueError, BadInputError) as error:
        raise refuse(str(error)) from None


def _reference(table: Mapping[str, Any], memory: Mapping[str, Any]) -> str:
    """Return a rule's reference: its own, or that of the rule it names in `reference_of`."""
    owner = memory.get(table["reference_of"]) if "reference_of" in table else table
    text = owner.get("reference") if isinstance(owner, Mapping) else None
    if not isinstance(text, str) or not text.strip():
        if owner is table:
            raise ValueError("'reference' is missing or empty")
        raise ValueError(
            f"'reference_of' names no rule with a reference: {table['reference_of']!r}"
        )
    return text


def _signature(data: Mapping[str, Any]) -> Signature:
    if data.get("status") not in get_args(WitnessStatus):
        raise ValueError("its signature has no 'status' of a failure")
    return Signature(**{key: str(value) for key, value in data.items()})  # type: ignore[arg-type]


def _matcher(data: Mapping[str, Any]) -> Matcher:
    if data.get("scope", "kernel") not in ("kernel", "host"):
        raise ValueError("its matcher's 'scope' is to be kernel or host")
    matcher = Matcher(**{**data, "code": tuple(map(str, data.get("code", [])))})
    check_matcher(matcher)
    return matcher


def _where(text: Any) -> Platform:
    triton, _, place = str(text).partition(" ")
    target, _, gpu = place.partition(" ")
    if not target:
        raise ValueError(f"{text!r} is to be a version and a target, such as '3.6.0 sm_90'")
    return Platform(triton, target, gpu)


def _gain(where: str, numbers: Any) -> Gain:
    if not isinstance(numbers, list) or len(numbers) != 3:
        raise ValueError(f"the gain on {where!r} is to be [speedup, low, high]")
    speedup, low, high = map(float, numbers)
    return Gain(_where(where), speedup, (low, high))
