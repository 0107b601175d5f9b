"""The service: serve, and serve token."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sqlalchemy import Engine

app = typer.Typer(rich_markup_mode=None)
tokens = typer.Typer(help="Tokens of the service: who may do what, and how much of it.")
app.add_typer(tokens, name="token")

FolderOption = Annotated[
    Path, typer.Option("--folder", metavar="DIR", help="Folder of all files of the service.")
]
UserArg = Annotated[str, typer.Argument(metavar="USER", help="A user, who may have several.")]
IdArg = Annotated[str, typer.Argument(metavar="ID", help="The id of a token, as `list` shows it.")]
_FOLDER = Path("serve")
_DAY_S, _HOUR_S = 86_400.0, 3_600.0
_MOST = 1e6
"""The most of an amount with a fraction, so that none is infinite; NaN is none either."""
_MOST_COUNT = 2**31 - 1
"""The most that a column of a database holds."""


@app.callback(invoke_without_command=True)
def serve(
    ctx: typer.Context,
    folder: FolderOption = _FOLDER,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8710,
    jobs: Annotated[
        int, typer.Option(min=0, help="Jobs at the same time; the others wait. 0: none begins.")
    ] = 1,
    store: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="PostgreSQL database for tokens, jobs and records of runs. Default: files, or the "
            "one that the folder had before.",
        ),
    ] = "",
    evaluation_cache: Annotated[
        str,
        typer.Option(
            metavar="PLACE",
            help="Verdicts that jobs share: on (a file in the folder), a file, or a PostgreSQL "
            "database. Default: off.",
        ),
    ] = "",
    share_verdicts: Annotated[
        bool,
        typer.Option(
            "--share-verdicts",
            help="Share them, and prepared references, between users, who trust each other; "
            "without it each has their own.",
        ),
    ] = False,
    warm: Annotated[
        int,
        typer.Option(min=0, help="References kept ready after evaluations, for the next of each."),
    ] = 2,
    warm_minutes: Annotated[
        float, typer.Option(min=0, max=_MOST, help="Minutes that one is kept.")
    ] = 10.0,
    warm_gb: Annotated[
        float, typer.Option(min=0, max=_MOST, help="Most GiB of their processes.")
    ] = 8.0,
    ray: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Ray cluster that judges: HOST:PORT or auto. Default: here."
        ),
    ] = "",
    timeout_s: Annotated[float, typer.Option(help="Most seconds for one candidate.")] = 600.0,
    memory_gb: Annotated[float, typer.Option(help="Most GiB for one candidate.")] = 16.0,
    parallel: Annotated[int, typer.Option(help="Most steps in flight in one job.")] = 4,
    keep_days: Annotated[
        float,
        typer.Option(
            min=0,
            max=_MOST,
            help="Days after which an ended job is deleted at a start. 0: never.",
        ),
    ] = 0.0,
    tls_certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificate, in PEM form.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its private key.")] = None,
    proxy: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Proxy with TLS in front, whose X-Forwarded-For is believed."
        ),
    ] = "",
    split: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=DIR",
            help="Problems for trainers, such as train=DIR and eval=DIR; repeatable. Default: a "
            "small set of synthesized ones.",
        ),
    ] = None,
    language: Annotated[
        str,
        typer.Option(help="Language of trainers' kernels. Default: triton on a GPU, cpp without."),
    ] = "",
    trust_users: Annotated[
        bool,
        typer.Option(
            "--trust-users", help="Serve though problems cannot be confined on this machine."
        ),
    ] = False,
) -> None:
    """Serve evaluations, searches and campaigns to a team over HTTP, until Ctrl-C.

    Make a token first: adaexplore serve token add USER. Jobs under way go on at the next start.
    """
    if ctx.invoked_subcommand:
        return
    from adaexplore.core.settings.config import Config
    from adaexplore.core.settings.configure import make_config
    from adaexplore.run.session import device_of, setup_of
    from adaexplore.serve.options import Bounds

    require_packages()
    from adaexplore.serve.app import ServiceSettings
    from adaexplore.serve.http.listening import Listening
    from adaexplore.serve.http.server import run_service
    from adaexplore.serve.tables import store_of
    from adaexplore.serve.trainers.splits import builtin_splits, read_splits
    from adaexplore.serve.warm import WarmLimits

    place = str(folder / "verdicts.db") if evaluation_cache == "on" else evaluation_cache
    bounds = {"timeout_s": timeout_s, "memory_gb": memory_gb, "parallel": parallel}
    given = {"store": store_of(folder, store), "ray": ray, "evaluation_cache": place, **bounds}
    config: Config = make_config({name: value for name, value in given.items() if value != ""})
    splits, left_out = read_splits(split) if split else (builtin_splits(), [])
    for line in left_out:
        print(line)
    device = device_of(None).partition(":")[0]
    settings = ServiceSettings(
        folder.resolve(),
        jobs,
        config.store,
        config.ray,
        Bounds(config.timeout_s, config.memory_gb, config.parallel),
        keep_s=keep_days * _DAY_S,
        splits=splits,
        language=setup_of(make_config({"language": language} if language else {})).language,
        device="" if ray else device,
        evaluation_cache=config.evaluation_cache,
        share_verdicts=share_verdicts,
        warm=WarmLimits(
            0 if ray else warm,  # one that waits would keep its device from the cluster
            warm_minutes * 60.0,
            int(warm_gb * 2**30),
            alone=device != "cpu",
        ),
    )
    listening = Listening(host, port, tls_certificate, tls_key, proxy)
    run_service(
        settings, listening, trust_users=trust_users, say=lambda line: print(line, flush=True)
    )


@tokens.command("add")
def add(
    user: UserArg,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="evaluate, search, campaign, models or metrics; repeatable."),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, max=_MOST_COUNT, help="Jobs queued or running at once.")
    ] = 4,
    candidates: Annotated[
        int, typer.Option(min=1, max=_MOST_COUNT, help="Candidates judged in a day.")
    ] = 1000,
    requests: Annotated[
        int, typer.Option(min=1, max=_MOST_COUNT, help="Requests in a minute.")
    ] = 600,
    days: Annotated[
        float | None, typer.Option(min=0, max=_MOST, help="Days until it expires.")
    ] = None,
    folder: FolderOption = _FOLDER,
) -> None:
    """Make a token and print it; only its hash is kept. It holds at once.

    Default scopes: evaluate, search and campaign. `models` lets its jobs ask the language models
    whose keys are in the service's environment.
    """
    from adaexplore.serve.accounts import Account, add_token

    scopes = tuple(scope or ("evaluate", "search", "campaign"))
    account = Account(
        user=user,
        scopes=scopes,  # type: ignore[arg-type] # checked there
        most_jobs=jobs,
        most_candidates=candidates,
        most_requests=requests,
        expires_at=None if days is None else time.time() + days * _DAY_S,
    )
    print(add_token(_database(folder), account))


@tokens.command("list")
def show(folder: FolderOption = _FOLDER) -> None:
    """List all tokens, without their secrets."""
    from rich.table import Table

    from adaexplore.cli.terminal.printing import show_table
    from adaexplore.serve.accounts import accounts

    table = Table("id", "user", "scopes", "jobs", "candidates a day", "expires", box=None)
    for account in accounts(_known(folder)):
        ends = account.expires_at
        table.add_row(
            account.id,
            account.user,
            ", ".join(account.scopes),
            str(account.most_jobs),
            str(account.most_candidates),
            "never" if ends is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(ends)),
        )
    show_table(table)


@tokens.command("rotate")
def rotate(
    token: IdArg,
    grace_h: Annotated[
        float, typer.Option(min=0, max=_MOST, help="Hours that the old one still holds.")
    ] = 24,
    folder: FolderOption = _FOLDER,
) -> None:
    """Make a token like an old one and print it; the old one ends after a while."""
    from adaexplore.serve.accounts import rotate_token

    print(rotate_token(_known(folder), token, grace_h * _HOUR_S))


@tokens.command("revoke")
def revoke(token: IdArg, folder: FolderOption = _FOLDER) -> None:
    """End a token at once."""
    from adaexplore.serve.accounts import revoke_token

    revoke_token(_known(folder), token)


def _database(folder: Path) -> Engine:
    from adaexplore.serve.tables import open_folder

    return open_folder(folder)


def _known(folder: Path) -> Engine:
    """Return the database of a service; raise `BadInputError` for a folder without one."""
    from adaexplore.core.errors import BadInputError
    from adaexplore.serve.tables import FILE_NAME, URL_NAME

    if not any((folder / name).is_file() for name in (FILE_NAME, URL_NAME)):
        raise BadInputError(
            f"{folder} is no folder of a service; name it with --folder, or make one with: "
            "adaexplore serve token add USER"
        )
    return _database(folder)


def require_packages() -> None:
    """Raise `BadInputError` where the packages of the service are not installed."""
    from importlib.util import find_spec

    from adaexplore.core.errors import BadInputError

    needed = ("websockets", "fastapi", "uvicorn", "sse_starlette", "prometheus_client", "limits")
    if missing := [name for name in needed if find_spec(name) is None]:
        raise BadInputError(
            f"{', '.join(missing)} cannot be imported; pip install 'adaexplore[serve]'"
        )
