"""What a campaign is to run: from a TOML file, or from files on the command line."""

from __future__ import annotations

import difflib
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adaexplore.core.ask import MANUAL
from adaexplore.core.config import CAMPAIGN_DEFAULTS, Allocation, Config
from adaexplore.core.configure import make_config, parse_settings
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Language, Mode, Precision, TargetName
from adaexplore.run.proposers import proposers

CAMPAIGN_SETTINGS = make_config(CAMPAIGN_DEFAULTS)
"""Searches of a campaign end where little is to be gained: others can use the steps."""

_EXAMPLE = '[[problem]] with file = "a.py" or files = "level2/*.py"'


class Options(BaseModel):
    """What may be said of all problems (`[defaults]`) or of some (`[[problem]]`).

    None is what was not said. Several devices or models are separated by commas, or a list.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    language: Language | None = None
    device: str | list[str] | None = None
    target: TargetName | None = None
    precision: Precision | None = None
    mode: Mode | None = None
    seed: int | None = Field(None, ge=0, lt=2**31)
    require_custom: bool | None = None
    steps: int | None = Field(None, ge=1)
    model: str | list[str] | None = None
    proposer: Literal["compiler", "manual"] | None = None
    settings: dict[str, str | bool | int | float] = Field(default_factory=dict)


class ProblemTable(Options):
    """One file, or those that match a pattern or one of several; relative to the TOML file."""

    file: str | None = None
    files: str | list[str] | None = None
    name: str | None = None


class Shared(BaseModel):
    """What a campaign has once."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    budget: str = ""
    parallel: int = Field(1, ge=1, le=64)
    allocation: Allocation = "headroom"
    turn_steps: int = Field(4, ge=1)
    first_steps: int = Field(8, ge=1)
    prompts: str = ""
    memory: str = ""
    record: str = ""
    replay: str = ""
    base_url: str = ""


class CampaignFile(Shared):
    """A whole file."""

    defaults: Options = Options()
    problem: list[ProblemTable] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Entry:
    """One problem of a campaign with its options; its run lies in the folder called `name`.

    `devices` are where it may be judged, empty for whatever the machine has. `steps` is None where
    only the budget limits them. `settings` are `key=value`.
    """

    name: str
    path: str
    language: Language | None
    devices: tuple[str, ...]
    target: TargetName | None
    precision: Precision
    mode: Mode
    seed: int
    require_custom: bool
    steps: int | None
    proposers: tuple[str, ...]
    settings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Entry:
        """Inverse of `to_json`."""
        values = {f.name: data[f.name] for f in fields(Entry)}
        lists = ("devices", "proposers", "settings")
        return Entry(**values | {name: tuple(values[name]) for name in lists})

    def parsed_settings(self) -> Config:
        """The settings of its search."""
        return parse_settings(self.settings, CAMPAIGN_SETTINGS)


def read_campaign_file(path: Path) -> CampaignFile:
    """A campaign's file.

    Raises `BadInputError` for one that cannot be read, is no TOML, or says what is not understood.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInputError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path} is not TOML: {error}") from None
    try:
        return CampaignFile.model_validate(data)
    except ValidationError as error:
        raise BadInputError(f"{path}: {_complaint(error)}") from None


def entries(asked: CampaignFile, folder: Path, said: Options) -> list[Entry]:
    """The problems of a campaign, in order, each under a name of its own.

    What is `said` on the command line stands above the file's tables, and those above its defaults.
    Relative paths begin at `folder`. Raises `BadInputError` where there is no problem, a pattern
    matches none, or a problem is there twice.
    """
    found = [
        _entry(path, table, asked.defaults, said)
        for table in asked.problem
        for path in _paths(table, folder)
    ]
    if not found:
        raise BadInputError(f"there are no problems; write {_EXAMPLE}, or give files")
    _refuse_duplicates(found)
    return _named(found)


def _paths(table: ProblemTable, folder: Path) -> list[Path]:
    if (table.file is None) == (table.files is None):
        raise BadInputError(f"a problem has either file or files: write {_EXAMPLE}")
    if table.file is not None:
        return [(folder / table.file).resolve()]
    if table.name:
        raise BadInputError(f"name = {table.name!r} is for one file: write file instead of files")
    patterns = [table.files] if isinstance(table.files, str) else table.files or []
    return [path for pattern in patterns for path in _matches(pattern, folder)]


def _matches(pattern: str, folder: Path) -> list[Path]:
    base, rest = (Path("/"), pattern.lstrip("/")) if pattern.startswith("/") else (folder, pattern)
    try:
        matches = sorted(path for path in base.glob(rest) if path.is_file())
    except (ValueError, NotImplementedError) as error:
        raise BadInputError(f"files = {pattern!r}: {error}") from None
    if not matches:
        raise BadInputError(f"files = {pattern!r} matches nothing in {base}")
    return [path.resolve() for path in matches]


def _entry(path: Path, table: ProblemTable, defaults: Options, said: Options) -> Entry:
    def first(name: str, otherwise: Any = None) -> Any:
        values = [getattr(options, name) for options in (said, table, defaults)]
        return next((value for value in values if value is not None), otherwise)

    settings = {**defaults.settings, **table.settings, **said.settings}
    models = _listed(first("model"))
    entry = Entry(
        name=table.name or "",
        path=str(path),
        language=first("language"),
        devices=_listed(first("device")),
        target=first("target"),
        precision=first("precision", "fp32"),
        mode=first("mode", "as-built"),
        seed=first("seed", 0),
        require_custom=first("require_custom", False),
        steps=first("steps"),
        proposers=_proposers(models, first("proposer")),
        settings=tuple(f"{key}={value}" for key, value in settings.items()),
    )
    entry.parsed_settings()
    return entry


def _proposers(models: Sequence[str], proposer: str | None) -> tuple[str, ...]:
    if proposer != MANUAL:
        return proposers(models, compiler=proposer is not None)
    if models:
        raise BadInputError(f"--proposer {MANUAL}: prompts are answered by you or by a --model")
    return (MANUAL,)


def _listed(value: str | Sequence[str] | None) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value or ()
    return tuple(part.strip() for part in parts if part.strip())


def _refuse_duplicates(found: Iterable[Entry]) -> None:
    seen: set[tuple[object, ...]] = set()
    for entry in found:
        key = (entry.path, entry.precision, entry.mode, entry.language, entry.target, entry.seed)
        if key in seen and not entry.name:
            raise BadInputError(
                f"{entry.path} is there twice, both times in {entry.precision}; leave one out, or "
                "give it a name of its own"
            )
        seen.add(key)


def _named(found: Sequence[Entry]) -> list[Entry]:
    """The entries with names: the file's, with the class or the folder where that is not enough."""
    groups: dict[str, list[Entry]] = {}
    for entry in found:
        groups.setdefault(Path(entry.path).stem, []).append(entry)
    named = [
        replace(entry, name=entry.name or _name(entry, groups[Path(entry.path).stem]))
        for entry in found
    ]
    for name, count in Counter(entry.name for entry in named).items():
        if count > 1:
            raise BadInputError(f"{count} problems would be called {name}: give each a name")
        if Path(name).name != name or name.startswith("."):
            raise BadInputError(f"name = {name!r}: it is a folder's, so write it without / and .")
    return named


def _name(entry: Entry, alike: Sequence[Entry]) -> str:
    """The shortest name that tells an entry from those whose files are called the same."""
    path = Path(entry.path)
    several_files = len({one.path for one in alike}) > 1
    several_classes = len({(one.path, one.precision) for one in alike}) > len(
        {one.path for one in alike}
    )
    folder = f"{path.parent.name}-" if several_files else ""
    return f"{folder}{path.stem}{f'-{entry.precision}' if several_classes else ''}"


def _complaint(error: ValidationError) -> str:
    """What is wrong first, where, and which key was meant."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] != "extra_forbidden":
        return f"{place}: {first['msg']}"
    inside = {"defaults": Options, "problem": ProblemTable}.get(str(first["loc"][0]), CampaignFile)
    model = inside if len(first["loc"]) > 1 else CampaignFile
    key = str(first["loc"][-1])
    known = list(model.model_fields)
    near = difflib.get_close_matches(key, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
    return f"{place}: no such key; {hint}"
