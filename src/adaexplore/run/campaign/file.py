"""The problems of a campaign with their configurations: from a TOML file, or from the command line.

The keys of the file are fields of `Config`; a `[[problem]]` table names files, or tasks of a
benchmark (see `tasks`), and overrides some.
"""

from __future__ import annotations

import difflib
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from adaexplore.core.config import CAMPAIGN_DEFAULTS, DEFAULT_STEPS, Config
from adaexplore.core.configure import Spelling, changes, make_config
from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.benchmark import Exclusion
from adaexplore.problems.flashinfer.dataset import TASK, dataset_entries, entry_named, is_dataset
from adaexplore.run.campaign.tasks import TASK_KEYS, Tasks, tasks_of

_EXAMPLE = '[[problem]] with file = "a.py" or files = "level2/*.py"'
_OF_CAMPAIGN = ("budget", "parallel", "allocation", "turn_steps", "first_steps")
"""Fields that the campaign has once, and its runs have not."""
_SHARED = (
    *(*_OF_CAMPAIGN, "prompts", "memory", "record", "replay", "base_url"),
    *("temperature", "reply_tokens", "reasoning", "concurrency"),
)
"""Fields that all problems have in common."""
_NOT_IN_FILE = ("run", "memory_update")
_PATHS = ("prompts", "record", "replay", "start_from")
_OF_FILES = ("file", "files", "name")
_OF_TABLE = (*_OF_FILES, *TASK_KEYS)


@dataclass(frozen=True, slots=True)
class CampaignEntry:
    """One problem of a campaign: its file and its configuration; `name` is the folder of its run.

    A `path` that is not absolute begins at the campaign's folder. `config.device` may list several
    devices; `config.steps` is None where only the budget limits the steps. `category` is that of a
    benchmark's task, else empty.
    """

    name: str
    path: str
    config: Config
    category: str = ""

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that may judge the problem, empty for the default of the machine."""
        return tuple(p.strip() for p in (self.config.device or "").split(",") if p.strip())

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        fields = {"name": self.name, "path": self.path, "category": self.category}
        return {**fields, "config": _dumped(self.config)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> CampaignEntry:
        """Return the entry that `to_json` wrote."""
        return CampaignEntry(**{**data, "config": Config(**data["config"])})


@dataclass(frozen=True, slots=True)
class CampaignOrder:
    """A campaign: its own configuration, and its problems in order, each with a unique name.

    `excluded` are the tasks of benchmarks that were chosen and cannot become problems. `files` are
    the texts of files to write into the folder, by name; they are no part of the plain data.
    """

    config: Config
    entries: tuple[CampaignEntry, ...]
    excluded: tuple[Exclusion, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        entries = [entry.to_json() for entry in self.entries]
        excluded = [asdict(one) for one in self.excluded]
        return {"config": _dumped(self.config), "entries": entries, "excluded": excluded}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> CampaignOrder:
        """Return the order that `to_json` wrote."""
        entries = tuple(CampaignEntry.from_json(entry) for entry in data["entries"])
        excluded = tuple(Exclusion(**one) for one in data.get("excluded", ()))
        return CampaignOrder(Config(**data["config"]), entries, excluded)

    def changed(self, given: Config) -> CampaignOrder:
        """Return the order with the fields that were given in place of its own."""
        entries = tuple(replace(e, config=_of_entry(given.over(e.config))) for e in self.entries)
        return replace(self, config=given.over(self.config), entries=entries)


def campaign_order(what: Sequence[Path], given: Config, op_type: str = "") -> CampaignOrder:
    """Return the campaign of one TOML file, of files of problems, or of datasets' definitions.

    Of a dataset, those of one op type are taken, the one that is named in `given`, or all.

    Fields in `given` override the tables of the file, and those override its top-level keys.
    Raises `BadInputError` for a file that cannot be read or understood, a pattern without a match,
    or a problem that is listed twice.
    """
    files = [path for path in what if path.suffix == ".toml"]
    if files and len(what) > 1:
        raise BadInputError(f"{files[0]} lists the problems: give nothing beside it")
    paths = [one for path in what for one in _definitions(path, given, op_type)]
    for path in paths:
        if path.is_dir():
            raise BadInputError(
                f"{path} is a folder and no campaign; give its problems: {path}/*.py"
            )
    if files:
        return read_campaign_file(files[0], given)
    return _order({}, [{"file": str(path)} for path in paths], Path.cwd(), given)


def benchmark_order(table: Mapping[str, Any], given: Config) -> CampaignOrder:
    """Return the campaign over the tasks of a benchmark; `table` has the keys of `TASK_KEYS`."""
    return _order({}, [table], Path.cwd(), given)


def _definitions(path: Path, given: Config, op_type: str = "") -> list[Path]:
    """Return the files of a dataset's definitions, or the path itself if it is none."""
    if not is_dataset(path):
        if op_type:
            raise BadInputError(f"--op-type {op_type}: {path} is no dataset of definitions")
        return [path]
    if given.definition:
        return [entry_named(path, given.definition).file]
    return [entry.file for entry in dataset_entries(path, op_type)]


def read_campaign_file(path: Path, given: Config | None = None) -> CampaignOrder:
    """Return the campaign of a TOML file; its relative paths begin at its folder.

    Raises `BadInputError` as `campaign_order` does.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInputError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path} is not TOML: {error}") from None
    tables = data.pop("problem", [])
    try:
        if not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
            raise BadInputError(f"problem is no table; write {_EXAMPLE}")
        return _order(data, tables, path.resolve().parent, given or Config())
    except BadInputError as error:
        raise BadInputError(f"{path}: {error}") from None


def _order(
    data: Mapping[str, Any], tables: Sequence[Mapping[str, Any]], folder: Path, given: Config
) -> CampaignOrder:
    _refuse_unknown(data, "", refused=_NOT_IN_FILE, also=("problem",))
    anchored = {key: _anchored(key, value, folder) for key, value in data.items()}
    base = Config.model_validate(CAMPAIGN_DEFAULTS)
    config = given.over(make_config(anchored, base, spelling=_as_toml("")))
    found: list[CampaignEntry] = []
    tasks = Tasks()
    for i, table in enumerate(tables):
        anchored = {key: _anchored(key, value, folder) for key, value in table.items()}
        made = _config_of(i, anchored, config, given)
        if "benchmark" in table:
            tasks = tasks.with_more(own := tasks_of(table, folder))
            found += [CampaignEntry("", path, _of_entry(made), c) for path, c in own.places]
        else:
            name = str(table.get("name", ""))
            paths = [o for path in _paths(table, folder) for o in _definitions(path, made)]
            found += [CampaignEntry(name, str(path), _of_entry(made)) for path in paths]
    if not found:
        raise BadInputError(f"there are no problems; write {_EXAMPLE}, or give files")
    _refuse_duplicates(found)
    return CampaignOrder(config, tuple(_named(found)), tasks.excluded, tasks.files)


def _config_of(number: int, table: Mapping[str, Any], config: Config, given: Config) -> Config:
    """Return the configuration of the problems of a table."""
    place = f"problem.{number}."
    _refuse_unknown(table, place, refused=(*_SHARED, *_NOT_IN_FILE), also=_OF_TABLE)
    own = {key: value for key, value in table.items() if key not in _OF_TABLE}
    made = given.over(make_config(own, config, spelling=_as_toml(place)))
    if made.steps is None and made.budget is None:
        made = made.model_copy(update={"steps": DEFAULT_STEPS})
    return made


def _of_entry(config: Config) -> Config:
    """Return the configuration of a run, without the fields that only the campaign has."""
    defaults = {name: Config.model_fields[name].default for name in _OF_CAMPAIGN}
    return config.model_copy(update=defaults)


def _dumped(config: Config) -> dict[str, Any]:
    return config.model_dump(mode="json", include=set(changes(config)))


def _anchored(key: str, value: Any, folder: Path) -> Any:
    if key not in _PATHS or not value:
        return value
    if isinstance(value, list):
        return [_anchored(key, one, folder) for one in value]
    return str(folder / value) if isinstance(value, str) else value


def _as_toml(place: str) -> Spelling:
    return lambda name, value: f"{place}{name} = {value!r}"


def _refuse_unknown(
    table: Mapping[str, Any], place: str, *, refused: Sequence[str], also: Sequence[str]
) -> None:
    """Raise `BadInputError` for an unknown key; name the keys that resemble it."""
    known = [*also, *(name for name in Config.model_fields if name not in refused)]
    for key in table:
        if key in refused and place:
            raise BadInputError(
                f"{place}{key}: a campaign has it once: write it above the problems"
            )
        if key not in known:
            near = difflib.get_close_matches(key, known, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
            raise BadInputError(f"{place}{key}: no such key; {hint}")


def _paths(table: Mapping[str, Any], folder: Path) -> list[Path]:
    file, files, name = (table.get(key) for key in _OF_FILES)
    if (file is None) == (files is None):
        raise BadInputError(f"a problem has either file or files: write {_EXAMPLE}")
    if file is not None:
        return [(folder / str(file)).resolve()]
    if name:
        raise BadInputError(f"name = {name!r} is for one file: write file instead of files")
    patterns = files if isinstance(files, list) else [files]
    return [path for pattern in patterns for path in _matches(str(pattern), folder)]


def _matches(pattern: str, folder: Path) -> list[Path]:
    base, rest = (Path("/"), pattern.lstrip("/")) if pattern.startswith("/") else (folder, pattern)
    try:
        matches = sorted(path for path in base.glob(rest) if path.is_file())
    except (ValueError, NotImplementedError) as error:
        raise BadInputError(f"files = {pattern!r}: {error}") from None
    if not matches:
        raise BadInputError(f"files = {pattern!r} matches nothing in {base}")
    return [path.resolve() for path in matches]


def _refuse_duplicates(found: Iterable[CampaignEntry]) -> None:
    seen: set[tuple[object, ...]] = set()
    for entry in found:
        c = entry.config
        key = (entry.path, c.precision, c.mode, c.language, c.target, c.seed)
        if key in seen and not entry.name:
            raise BadInputError(
                f"{entry.path} is there twice, both times in {c.precision}; leave one out, or "
                "give it a name of its own"
            )
        seen.add(key)


def _named(found: Sequence[CampaignEntry]) -> list[CampaignEntry]:
    """Return the entries under unique names: the file's, with class or folder where needed."""
    groups: dict[str, list[CampaignEntry]] = {}
    for entry in found:
        groups.setdefault(_stem(Path(entry.path)), []).append(entry)
    named = [
        replace(entry, name=entry.name or _name(entry, groups[_stem(Path(entry.path))]))
        for entry in found
    ]
    for name, count in Counter(entry.name for entry in named).items():
        if count > 1:
            raise BadInputError(f"{count} problems would be called {name}: give each a name")
        if Path(name).name != name or name.startswith("."):
            raise BadInputError(f"name = {name!r}: it is a folder's, so write it without / and .")
    return named


def _name(entry: CampaignEntry, alike: Sequence[CampaignEntry]) -> str:
    """Return the shortest name that tells an entry from those with the same file name."""
    path, precision = Path(entry.path), entry.config.precision
    files = {one.path for one in alike}
    classes = {(one.path, one.config.precision) for one in alike}
    folder = f"{path.parent.name}-" if len(files) > 1 else ""
    return f"{folder}{_stem(path)}{f'-{precision}' if len(classes) > len(files) else ''}"


def _stem(path: Path) -> str:
    """Return the name of a problem by its file, or by its folder where all files have one name."""
    return path.parent.name if path.name == TASK else path.stem
