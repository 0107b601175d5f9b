"""An MCP server: any coding agent is the model, with tools to take prompts and give replies."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from adaexplore.cli.options import config_parameters, given_config, help_of
from adaexplore.core.ask import MANUAL
from adaexplore.core.errors import AdaExploreError
from adaexplore.core.settings.configure import option_fields
from adaexplore.core.version import __version__
from adaexplore.run.asks.agents import AgentRuns

_FIELDS = (*option_fields("problem"), "prompts", "memory", "start_from", "steps", "run")

INSTRUCTIONS = """\
AdaExplore searches for a faster kernel of a PyTorch module, and you are its model. Start a run (or
go on with one), then repeat: next_prompt, answer it as it asks, submit_reply. A reply may bring a
follow-up prompt, which is answered in the same way, or a verdict measured by the evaluator. Answer
with what the prompt asks for and nothing else; evaluating is not your part. results shows how far
the run is, best_kernel the best source so far."""


def serve(transport: Literal["stdio", "http"], host: str, port: int) -> int:
    """Serves until its client leaves or it is interrupted; the exit code."""
    runs = AgentRuns()
    try:
        server = build(runs)
        if transport == "stdio":
            server.run("stdio")
        else:
            server.run("streamable-http", host=host, port=port)
    except KeyboardInterrupt:
        pass
    finally:
        runs.close()
    return 0


def build(runs: AgentRuns) -> MCPServer:
    """The server with its tools."""
    server = MCPServer("adaexplore", instructions=INSTRUCTIONS, version=__version__)

    def start_run(problem: str, settings: list[str] | None = None, **given: Any) -> dict[str, Any]:
        """Start a search on a problem: the path of a Python file in KernelBench form (Model,
        get_inputs, get_init_inputs). The other arguments are the options of `adaexplore explore`;
        `settings` are key=value texts, as for --set. Returns the run's folder, which the other
        tools take."""
        with _told():
            config = given_config(given, settings or [])
            return runs.start(Path(problem), config.model_copy(update={"proposer": MANUAL}))

    _take_fields(start_run)
    server.tool()(start_run)

    @server.tool()
    def next_prompt(run: str, ask: int | None = None) -> dict[str, Any]:
        """The next prompt to answer: its ask and turn, and the messages. With `ask`, the prompt
        that this ask waits at, again; `results` lists those that wait."""
        with _told():
            return runs.next_prompt(Path(run), ask)

    @server.tool()
    def submit_reply(run: str, ask: int, turn: int, reply: str) -> dict[str, Any]:
        """Give the reply to a prompt. Returns a follow-up prompt, or the evaluator's verdict."""
        with _told():
            return runs.submit(Path(run), ask, turn, reply)

    @server.tool()
    def results(run: str) -> dict[str, Any]:
        """Progress of a run: every step's verdict, the best one, the baselines' times."""
        with _told():
            return runs.results(Path(run))

    @server.tool()
    def best_kernel(run: str) -> str:
        """The source of the best correct kernel so far."""
        with _told():
            return runs.best_kernel(Path(run))

    return server


def _take_fields(tool: Callable[..., Any]) -> None:
    """Give a tool an argument for each of `_FIELDS`, in place of its `**given`."""
    own = [
        parameter
        for parameter in inspect.signature(tool, eval_str=True).parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    fields = config_parameters(_FIELDS, lambda name: Field(description=help_of(name)))
    tool.__signature__ = inspect.Signature([*own, *fields])  # type: ignore[attr-defined]
    tool.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *fields)}


@contextmanager
def _told() -> Iterator[None]:
    """Give an agent the line of an error that a user would read."""
    try:
        yield
    except AdaExploreError as error:
        raise ToolError(str(error)) from error
