"""Commands for those who answer prompts themselves: ask, tell, mcp."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from adaexplore.cli.options import RunArg, configured

app = typer.Typer(rich_markup_mode=None)


@app.command(cls=configured(names=("steps", "prompts"), settings=False))
def ask(
    ctx: typer.Context,
    run: RunArg,
    count: Annotated[int, typer.Option("-n", "--count", min=0, help="Number of new prompts.")] = 1,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Where to write the prompts.")
    ] = Path("asks"),
) -> None:
    """Write prompts as files: those of new steps, and of all that still wait for an answer.

    Answer asks/7.1.md (ask 7, first turn) in asks/7.1.reply.md, in any order. An ask without an
    answer ends after a week.
    """
    from rich.console import Console

    from adaexplore.cli.terminal.printing import say
    from adaexplore.run.asks.ask_files import REPLY_SUFFIX, change_plan, write_prompts
    from adaexplore.store import open_run

    console = Console()
    with open_run(run) as directory:
        change_plan(directory, ctx.obj)
        written = write_prompts(directory, count, output)
        for file, what in written.items():
            say(console, f"{file}: {what}; answer in {file.stem}{REPLY_SUFFIX}")
        if not written:
            say(console, "no prompt waits for an answer")


@app.command()
def tell(
    run: RunArg,
    replies: Annotated[
        list[Path], typer.Argument(metavar="REPLIES", help="Reply files, or folders of them.")
    ],
) -> None:
    """Take replies from files: patches are applied, candidates queued, follow-ups written.

    Then `adaexplore resume RUN` evaluates the candidates. Exit code 2 if a reply could not be
    taken; the others were.
    """
    from rich.console import Console

    from adaexplore.cli.terminal.printing import say
    from adaexplore.core.errors import BadInputError
    from adaexplore.run.asks.ask_files import ledger_of, reply_files, tell_one
    from adaexplore.store import open_run

    console, status = Console(), 0
    with open_run(run) as directory:
        ledger = ledger_of(directory)
        for file in reply_files(replies):
            try:
                result = tell_one(directory, ledger, file).line
            except BadInputError as error:
                result, status = str(error), BadInputError.exit_code
            say(console, f"{file.name}: {result}")
    raise typer.Exit(status)


@app.command()
def mcp(
    transport: Annotated[
        Literal["stdio", "http"],
        typer.Option(help="stdio: the agent starts this command. http: it connects to a port."),
    ] = "stdio",
    host: Annotated[str, typer.Option(help="Address to listen at, with http.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port, with http.")] = 8321,
) -> None:
    """Serve runs over MCP: a coding agent takes the prompts and gives the replies.

    For an agent that starts its servers itself, name the command `adaexplore mcp`.
    """
    from adaexplore.cli.mcp import serve

    serve(transport, host, port)
