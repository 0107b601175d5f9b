"""The commands for jobs of a service: list, follow, fetch, continue, cancel, ask and tell."""

from __future__ import annotations

import json as json_format
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adaexplore.cli.options import TOKEN
from adaexplore.core.errors import BadInputError

if TYPE_CHECKING:
    from adaexplore.serve.messages import JobInfo

app = typer.Typer(
    rich_markup_mode=None,
    help="Jobs of a service, also where the command that submitted them has ended.\n\n"
    f"The service's token is read from {TOKEN}; the jobs are those of its user. Start with: "
    "adaexplore jobs list --server URL",
)
NOT_DONE = 1
"""The exit code of `follow` for a job that failed or was cancelled."""
NO_MORE = 1
"""The exit code of `ask` for a job that has ended."""


def job_id(text: str) -> str:
    """Return the id of a job; refuse a text that is none."""
    if not re.fullmatch("[0-9a-f]{24}", text):
        raise BadInputError(
            f"{text!r} is no id of a job: one has 24 of the characters 0-9a-f, as `adaexplore jobs "
            "list` shows it"
        )
    return text


IdArg = Annotated[
    str, typer.Argument(metavar="ID", parser=job_id, help="The id of a job, as `list` shows it.")
]
ServerOption = Annotated[
    str,
    typer.Option("--server", metavar="URL", help="The service: http://HOST:PORT or https://HOST."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]


@app.command("list")
def show(
    server: ServerOption,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, max=1000, help="Number of jobs, the latest.")
    ] = 20,
    json: JsonOption = False,
) -> None:
    """List the latest jobs with their states, the latest first; with --json, as one array."""
    from rich.table import Table

    from adaexplore.cli.remote import open_service
    from adaexplore.cli.terminal.printing import show_table

    with open_service(server) as client:
        jobs = client.jobs(count)
    if json:
        print(json_format.dumps([job.model_dump(mode="json") for job in jobs]))
        return
    table = Table("id", "kind", "problem", "state", "submitted", "error", box=None)
    for job in jobs:
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(job.created_at))
        table.add_row(job.id, job.kind, job.problem, job.state, at, job.error)
    show_table(table)


@app.command()
def follow(job: IdArg, server: ServerOption, json: JsonOption = False) -> None:
    """Show the events of a job from its first to its end; with --json, all of them, a line each.

    Ctrl-C ends this command and not the job. Exit code 1 for a job that failed or was cancelled.
    """
    from rich.console import Console

    from adaexplore.cli.remote import SHOWN, line_of, open_service
    from adaexplore.cli.terminal.printing import say

    console = Console()
    with open_service(server) as client:
        for event in client.events(job):
            if json:
                print(event.model_dump_json(), flush=True)
            elif event.type in SHOWN | {"state", "verdict"}:
                say(console, line_of(event))
        ended = client.job(job)
    if not json:
        say(console, f"{ended.error}\nadaexplore jobs fetch {job} --server {server}".strip())
    raise typer.Exit(0 if ended.state == "done" else NOT_DONE)


@app.command()
def fetch(
    job: IdArg,
    server: ServerOption,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="Where to save them. Default: runs/PROBLEM-ID."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Save the result and the files of a job that has ended, also of one that failed half-way.

    result.json has the verdicts of an evaluation, the headline of a search or the summary of a
    campaign; --json prints it too. Files of the same names are replaced.
    """
    from rich.console import Console

    from adaexplore.cli.remote import fetch_job, open_service
    from adaexplore.cli.terminal.printing import say

    with open_service(server) as client:
        ended = client.job(job)
        folder = output or Path("runs") / f"{ended.problem}-{job[:8]}"
        result = fetch_job(client, ended, folder)
    if json:
        print(result.model_dump_json())
        return
    say(Console(), result.headline or ended.error or ended.state)
    for name in ("result.json", *ended.files):
        say(Console(), f"{folder / name}")


@app.command("continue")
def go_on(job: IdArg, server: ServerOption, json: JsonOption = False) -> None:
    """Continue a search or a campaign that was cancelled or failed, where its records end."""
    from adaexplore.cli.remote import open_service

    with open_service(server) as client:
        _print(client.go_on(job), server, json)


@app.command()
def cancel(job: IdArg, server: ServerOption, json: JsonOption = False) -> None:
    """End a job; what it has recorded stays, and a search or a campaign can be continued."""
    from adaexplore.cli.remote import open_service

    with open_service(server) as client:
        _print(client.cancel(job), server, json)


@app.command()
def ask(
    job: IdArg,
    server: ServerOption,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="Where to write the prompts. Default: asks/ID."
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until a prompt is there, or the job has ended.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Write the prompts of a search that wait for an answer as files (--proposer manual).

    Answer 7.1.md (ask 7, first turn) in 7.1.reply.md beside it, in any order; `tell` sends the
    replies. Exit code 1 for a job that has ended: no prompt comes any more.
    """
    from rich.console import Console

    from adaexplore.cli.remote import open_service
    from adaexplore.cli.terminal.printing import say
    from adaexplore.run.asks.ask_files import REPLY_SUFFIX, make_folder, write_prompt
    from adaexplore.serve.messages import ENDED

    folder, written = output or _asks(job), []
    with open_service(server) as client:
        for prompt in client.wait_for_prompts(job) if wait else client.prompts(job):
            make_folder(folder)
            file = write_prompt(folder, prompt.ask, prompt.turn, prompt.text)
            reply_file = file.with_suffix(REPLY_SUFFIX)
            written.append((prompt, file, reply_file))
            if not json:
                say(Console(), f"{file}: {prompt.purpose}; answer in {reply_file.name}")
        info = client.job(job)
    if json:
        files = [
            prompt.model_dump(mode="json") | {"file": str(file), "reply_file": str(reply_file)}
            for prompt, file, reply_file in written
        ]
        print(json_format.dumps(info.model_dump(mode="json") | {"prompts": files}))
    elif not written:
        say(Console(), f"no prompt waits for an answer; the job is {info.state}")
        next_command = "fetch" if info.state in ENDED else "ask --wait"
        say(Console(), f"  adaexplore jobs {next_command} {job} --server {server}")
    raise typer.Exit(NO_MORE if info.state in ENDED else 0)


@app.command()
def tell(
    job: IdArg,
    server: ServerOption,
    replies: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="REPLIES", help="Reply files, or folders of them. Default: asks/ID."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Send replies from files: the search goes on with them, and evaluates what they propose.

    Replies that were sent before are left alone. Exit code 2 if a reply could not be taken; the
    others were. With --json, a line for each.
    """
    from rich.console import Console

    from adaexplore.cli.remote import open_service, tell_there
    from adaexplore.cli.terminal.printing import say
    from adaexplore.core.errors import BadInputError
    from adaexplore.run.asks.ask_files import reply_files

    taken, status = 0, 0
    files = reply_files(replies or [_asks(job)])
    with open_service(server) as client:
        for told in tell_there(client, job, files):
            taken += told.state == "taken"
            status = BadInputError.exit_code if told.state == "refused" else status
            if json:
                print(json_format.dumps(asdict(told)), flush=True)
            else:
                say(Console(), f"{Path(told.file).name}: {told.reason or told.state}")
    if taken and not json:
        say(Console(), f"  adaexplore jobs ask --wait {job} --server {server}")
    raise typer.Exit(status)


def _asks(job: str) -> Path:
    """Return the default folder for the prompts of a job."""
    return Path("asks") / job


def _print(job: JobInfo, server: str, json: bool) -> None:
    from adaexplore.serve.messages import ENDED

    if json:
        print(job.model_dump_json())
        return
    print(f"job {job.id}: {job.state}")
    if job.state not in ENDED:
        print(f"  adaexplore jobs follow {job.id} --server {server}")
