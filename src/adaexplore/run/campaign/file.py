"""The problems of a campaign with their configurations: from a TOML file, or from the command line.

The keys of the file are fields of `Config`; a `[[problem]]` table names files, or tasks of a
benchmark (see `tasks`), and overrides some.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.core.files import why_unread
from adaexplore.core.protocols.benchmark import Exclusion
from adaexplore.core.settings.config import CAMPAIGN_DEFAULTS, DEFAULT_STEPS, Config
from adaexplore.core.settings.configure import Spelling, changes, make_config
from adaexplore.core.text.hints import near
from adaexplore.memory.files import BUNDLED
from adaexplore.problems.flashinfer.dataset import TASK, dataset_entries, entry_named, is_dataset
from adaexplore.run.campaign.tasks import TASK_KEYS, Tasks, tasks_of
from adaexplore.run.recall import NONE

_EXAMPLE = '[[problem]] with file = "a.py" or files = "level2/*.py"'
OF_CAMPAIGN = ("budget", "parallel", "allocation", "turn_steps", "first_steps")
"""Fields that the campaign has once, and its runs have not."""
OF_CLIENTS = (
    *("record", "replay", "base_url"),
    *("temperature", "reply_tokens", "reasoning", "concurrency"),
)
"""Fields of the clients, which all runs share."""
_SHARED = (*OF_CAMPAIGN, *OF_CLIENTS, *("prompts", "memory", "store", "evaluation_cache"))
"""Fields that all problems have in common."""
NOT_IN_FILE = ("run", "memory_update")
_PATHS = ("prompts", "memory", "record", "replay", "start_from")
_OF_FILES = ("file", "files", "name")
_OF_TABLE = (*_OF_FILES, *TASK_KEYS)


@dataclass(frozen=True, slots=True)
class CampaignEntry:
    """One problem of a campaign: its file and its configuration; `name` is the folder of its run.

    A `path` that is not absolute begins at the campaign's folder. `config.device` may list several
    devices; `config.steps` is None where only the budget limits the steps. `category` is that of a
    benchmark's task, else empty. `arm` is that of a study, else empty; its run's folder lies in the
    arm's.
    """

    name: str
    path: str
    config: Config
    category: str = ""
    arm: str = ""

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that may judge the problem, empty for the default of the machine."""
        return tuple(p.strip() for p in (self.config.device or "").split(",") if p.strip())

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        fields = {"name": self.name, "path": self.path, "category": self.category}
        fields |= {"arm": self.arm} if self.arm else {}
        return {**fields, "config": _dumped(self.config)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> CampaignEntry:
        """Return the entry that `to_json` wrote."""
        return CampaignEntry(**{**data, "config": Config(**data["config"])})


@dataclass(frozen=True, slots=True)
class CampaignPlan:
    """A campaign: its own configuration, and its problems in order, each with a unique name.

    `excluded` are the tasks of benchmarks that were chosen and cannot become problems. `arms` are
    the names of a study's arms in their order, none in other campaigns. `files` are the texts of
    files to write into the folder, by name; they are no part of the plain data.
    """

    config: Config
    entries: tuple[CampaignEntry, ...]
    excluded: tuple[Exclusion, ...] = ()
    arms: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def problems_of_a_device(self) -> int:
        """The number of problems whose runs are in flight together on one device."""
        problems = len({entry.path for entry in self.entries})
        at_once = math.ceil(self.config.parallel * problems / len(self.entries))
        devices = {device for entry in self.entries for device in entry.devices}
        return math.ceil(min(at_once, problems) / max(len(devices), 1))

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        entries = [entry.to_json() for entry in self.entries]
        excluded = [asdict(one) for one in self.excluded]
        data = {"config": _dumped(self.config), "entries": entries, "excluded": excluded}
        return data | ({"arms": list(self.arms)} if self.arms else {})

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> CampaignPlan:
        """Return the order that `to_json` wrote."""
        entries = tuple(CampaignEntry.from_json(entry) for entry in data["entries"])
        excluded = tuple(Exclusion(**one) for one in data.get("excluded", ()))
        arms = tuple(data.get("arms", ()))
        return CampaignPlan(Config(**data["config"]), entries, excluded, arms)

    def changed(self, given: Config) -> CampaignPlan:
        """Return the order with the fields that were given in place of its own."""
        entries = tuple(replace(e, config=of_entry(given.over(e.config))) for e in self.entries)
        return replace(self, config=given.over(self.config), entries=entries)


def campaign_order(what: Sequence[Path], given: Config, op_type: str = "") -> CampaignPlan:
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
    return order_of({}, [{"file": str(path)} for path in paths], Path.cwd(), given)


def _definitions(path: Path, given: Config, op_type: str = "") -> list[Path]:
    """Return the files of a dataset's definitions, or the path itself if it is none."""
    if not is_dataset(path):
        if op_type:
            raise BadInputError(f"--op-type {op_type}: {path} is no dataset of definitions")
        return [path]
    if given.definition:
        return [entry_named(path, given.definition).file]
    return [entry.file for entry in dataset_entries(path, op_type)]


def read_campaign_file(path: Path, given: Config | None = None) -> CampaignPlan:
    """Return the campaign of a TOML file; its relative paths begin at its folder.

    Raises `BadInputError` as `campaign_order` does.
    """
    data = read_toml(path)
    if "arm" in data:
        raise BadInputError(f"{path} has arms: adaexplore study {path}")
    try:
        tables = tables_of(data, "problem", _EXAMPLE)
        return order_of(data, tables, path.resolve().parent, given or Config())
    except BadInputError as error:
        raise BadInputError(f"{path}: {error}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Return the contents of a TOML file; `BadInputError` if it cannot be read."""
    try:
        if why := why_unread(path):
            raise BadInputError(f"{path}: {why}; give a TOML file")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInputError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path} is not TOML: {error}") from None


def tables_of(data: dict[str, Any], key: str, example: str) -> list[dict[str, Any]]:
    """Remove the tables of a key from the contents of a file, and return them."""
    tables = data.pop(key, [])
    if not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
        raise BadInputError(f"{key} is no table; write {example}")
    return tables


def order_of(
    data: Mapping[str, Any],
    tables: Sequence[Mapping[str, Any]],
    folder: Path,
    given: Config,
    defaults: Mapping[str, Any] = CAMPAIGN_DEFAULTS,
) -> CampaignPlan:
    """Return the campaign of top-level keys and tables of problems; paths begin at `folder`.

    Raises `BadInputError` as `campaign_order` does.
    """
    refuse_unknown(data, "", refused=NOT_IN_FILE, also=("problem",))
    base = Config.model_validate(defaults)
    config = given.over(make_config(anchored(data, folder), base, spelling=as_toml("")))
    found: list[CampaignEntry] = []
    tasks = Tasks()
    for i, table in enumerate(tables):
        made = _config_of(i, anchored(table, folder), config, given)
        if "benchmark" in table:
            tasks = tasks.with_more(own := tasks_of(table, folder))
            found += [CampaignEntry("", path, of_entry(made), c) for path, c in own.places]
        else:
            name = str(table.get("name", ""))
            paths = [o for path in _paths(table, folder) for o in _definitions(path, made)]
            found += [CampaignEntry(name, str(path), of_entry(made)) for path in paths]
    if not found:
        raise BadInputError(f"there are no problems; write {_EXAMPLE}, or give files")
    _refuse_duplicates(found)
    return CampaignPlan(config, tuple(_named(found)), tasks.excluded, files=tasks.files)


def _config_of(number: int, table: Mapping[str, Any], config: Config, given: Config) -> Config:
    """Return the configuration of the problems of a table."""
    place = f"problem.{number}."
    refuse_unknown(table, place, refused=(*_SHARED, *NOT_IN_FILE), also=_OF_TABLE)
    own = {key: value for key, value in table.items() if key not in _OF_TABLE}
    made = given.over(make_config(own, config, spelling=as_toml(place)))
    if made.steps is None and made.budget is None:
        made = made.model_copy(update={"steps": DEFAULT_STEPS})
    return made


def of_entry(config: Config) -> Config:
    """Return the configuration of a run, without the fields that only the campaign has."""
    defaults = {name: Config.model_fields[name].default for name in OF_CAMPAIGN}
    return config.model_copy(update=defaults)


def _dumped(config: Config) -> dict[str, Any]:
    return config.model_dump(mode="json", include=set(changes(config)))


def _anchored(key: str, value: Any, folder: Path) -> Any:
    if key not in _PATHS or not value:
        return value
    if isinstance(value, list):
        return [_anchored(key, one, folder) for one in value]
    named = key == "memory" and value in (BUNDLED, NONE)
    return str(folder / value) if isinstance(value, str) and not named else value


def anchored(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the keys of a table, its relative paths from `folder`."""
    return {key: _anchored(key, value, folder) for key, value in table.items()}


def as_toml(place: str) -> Spelling:
    """Return a spelling of keys and values as they stand in the file."""
    return lambda name, value: f"{place}{name} = {value!r}"


def refuse_unknown(
    table: Mapping[str, Any],
    place: str,
    *,
    refused: Sequence[str],
    also: Sequence[str],
    once: str = "a campaign has it once: write it above the problems",
) -> None:
    """Raise `BadInputError` for an unknown key; name the keys that resemble it."""
    known = [*also, *(name for name in Config.model_fields if name not in refused)]
    for key in table:
        if key in refused and place:
            raise BadInputError(f"{place}{key}: {once}")
        if key not in known:
            raise BadInputError(f"{place}{key}: no such key; {near(key, known)}")


def _paths(table: Mapping[str, Any], folder: Path) -> list[Path]:
    file, files, name = (table.get(key) for key in _OF_FILES)
    if (file is None) == (files is None):
        raise BadInputError(f"a problem has either file or files: write {_EXAMPLE}")
    if file is not None:
        path = (folder / str(file)).resolve()
        if not path.exists():
            raise BadInputError(f"there is no problem file {path}")
        return [path]
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
