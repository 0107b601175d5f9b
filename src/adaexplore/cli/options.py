"""Arguments and options of commands; the options of a run come from the fields of `Config`."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Union, get_args, get_origin

import typer
from typer.core import TyperCommand
from typer.main import get_command

from adaexplore.core.errors import BadInputError
from adaexplore.core.files import require_writable
from adaexplore.core.problem import TargetName

if TYPE_CHECKING:
    from adaexplore.core.settings.config import Config
    from adaexplore.core.settings.config_fields import Group


def problem_path(text: str) -> Path:
    """Return a path; refuse an empty text, which `Path` takes for the working directory."""
    if not text:
        raise BadInputError("the path of the problem is empty; give a Python file")
    return Path(text)


ProblemArg = Annotated[
    Path,
    typer.Argument(
        metavar="PROBLEM",
        parser=problem_path,
        help="A Python file in KernelBench form (Model, get_inputs(), get_init_inputs()), or a "
        "dataset of FlashInfer-Bench or SOL-ExecBench with --definition.",
    ),
]
RunArg = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]


def writable(path: Path | None) -> Path | None:
    """Return the path of a file that long work ends in; see `require_writable`."""
    return path and require_writable(path)


DeviceOption = Annotated[
    str | None,
    typer.Option(help="cpu, cuda or cuda:<index>. Default: a GPU if there is one."),
]
TargetOption = Annotated[
    TargetName | None,
    typer.Option(
        help="Judge Triton without a GPU (--device cpu --language triton): the architecture to "
        "compile for. Kernels are interpreted on small sizes; times are estimated, not measured. "
        "Default there: sm_90."
    ),
]
ParallelOption = Annotated[
    int | None,
    typer.Option(min=1, help="Programs at once; a GPU times one at a time. Default: by the cores."),
]
TOKEN = "ADAEXPLORE_TOKEN"
ServerOption = Annotated[
    str,
    typer.Option(
        "--server",
        metavar="URL",
        help=f"Have a service do it (adaexplore serve); its token is read from {TOKEN}.",
    ),
]
MemoryArg = Annotated[
    str,
    typer.Argument(metavar="MEMORY", help="A memory's file, or `bundled`: the package's own."),
]
_SET_HELP = (
    "Change a setting, for example --set c=0.5; repeatable. `adaexplore settings` lists them."
)


class ConfigCommand(TyperCommand):
    """A command with an option for fields of `Config`, and `--set`; `ctx.obj` gets the `Config`.

    The options are made when the command is chosen, not when it is declared: `Config` takes a tenth
    of a second to load.
    """

    groups: ClassVar[Sequence[Group]] = ()
    names: ClassVar[Sequence[str]] = ()
    settings: ClassVar[bool] = True

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of the command."""
        return [*super().get_params(ctx), *self._options]

    def invoke(self, ctx: Any) -> Any:
        """Make the configuration, then run the command."""
        pairs = ctx.params.pop("settings", None) or []
        ctx.obj = given_config({name: ctx.params.pop(name) for name in self._fields}, pairs)
        return super().invoke(ctx)

    @cached_property
    def _fields(self) -> list[str]:
        from adaexplore.core.settings.configure import option_fields

        return [*option_fields(*self.groups), *self.names]

    @cached_property
    def _options(self) -> list[Any]:
        def command() -> None: ...

        parameters = config_parameters(self._fields, _option)
        if self.settings:
            option = typer.Option("--set", metavar="KEY=VALUE", help=_SET_HELP)
            parameters.append(_parameter("settings", Annotated[list[str] | None, option]))
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        app = typer.Typer(add_completion=False)
        app.command()(command)
        return list(get_command(app).params)


def configured(
    *groups: Group, names: Sequence[str] = (), settings: bool = True
) -> type[ConfigCommand]:
    """Return the class of a command with the options of `groups` and of the fields `names`."""
    return type(
        "Configured", (ConfigCommand,), {"groups": groups, "names": names, "settings": settings}
    )


def given_config(given: Mapping[str, Any], pairs: Sequence[str]) -> Config:
    """Return the configuration of a command line; None and empty lists are options not given.

    Raises `BadInputError` for an unknown setting or a value out of bounds.
    """
    from adaexplore.core.settings.configure import as_option, as_setting, make_config, parse_pairs

    values = {name: value for name, value in given.items() if value not in (None, [], ())}
    settings = parse_pairs(pairs)
    if "preset" in settings:  # what else is given goes before the values of the preset
        values["preset"] = settings.pop("preset")
    return make_config(settings, make_config(values, spelling=as_option), spelling=as_setting)


def config_parameters(
    fields: Sequence[str], describe: Callable[[str], Any]
) -> list[inspect.Parameter]:
    """Return a keyword for each field, None where it is not given; `describe` annotates it."""
    return [_parameter(field, Annotated[_type_of(field), describe(field)]) for field in fields]


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=None, annotation=annotation)


def _option(field: str) -> Any:
    from adaexplore.core.settings.configure import metavar_of, option_name

    return typer.Option(option_name(field), metavar=metavar_of(field), help=help_of(field))


def help_of(field: str) -> str:
    """Return a field's meaning as a sentence, with its default."""
    from adaexplore.core.settings.config import Config

    info = Config.model_fields[field]
    text = info.description or ""
    default = "" if info.default in (None, "", (), False) else f" [default: {info.default}]"
    return f"{text[:1].upper()}{text[1:]}.{default}"


def _type_of(field: str) -> Any:
    """Return the type of a field's option: plain, and None where it is not given."""
    from adaexplore.core.settings.config import Config

    kind: Any = Config.model_fields[field].annotation
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(arg for arg in get_args(kind) if arg is not type(None))
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) is tuple:
        kind = list[str]
    return kind | None
