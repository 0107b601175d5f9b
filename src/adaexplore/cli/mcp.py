"""An MCP server: any coding agent is the model, with tools to take prompts and give replies."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from rich.console import Console

from adaexplore.cli.asks import new_run
from adaexplore.core.ask import MANUAL
from adaexplore.core.client import Finish, Prompt, Reply
from adaexplore.core.errors import AdaExploreError
from adaexplore.core.evaluation import Passed, evaluation_to_json, rank
from adaexplore.core.feedback import render, verdict
from adaexplore.core.listener import follow
from adaexplore.core.node import Node
from adaexplore.core.problem import Language, Mode, Precision, TargetName
from adaexplore.core.version import __version__
from adaexplore.run.ask_files import study_of
from adaexplore.run.proposers import Plan
from adaexplore.run.results import summary_of, write_report
from adaexplore.run.search import Search
from adaexplore.run.session import Asked, Session, open_session
from adaexplore.run.study import Study
from adaexplore.store import RunDirectory, open_run, read_run

INSTRUCTIONS = """\
AdaExplore searches for a faster kernel of a PyTorch module, and you are its model. Start a run (or
go on with one), then repeat: next_prompt, answer it as it asks, submit_reply. A reply may bring a
follow-up prompt, which is answered in the same way, or a verdict measured by the evaluator. Answer
with what the prompt asks for and nothing else; evaluating is not your part. results shows how far
the run is, best_kernel the best source so far."""


class Runs:
    """The runs that agents work on, each with the processes that evaluate its candidates.

    Calls for one run go one after the other; those for several side by side.
    """

    def __init__(self) -> None:
        self._sessions: dict[Path, Session] = {}
        self._locks: dict[Path, threading.Lock] = {}
        self._handed_out: set[tuple[Path, int]] = set()
        self._stack = ExitStack()
        self._guard = threading.Lock()

    def close(self) -> None:
        """Ends all processes."""
        self._stack.close()

    def start(
        self, asked: Asked, steps: int, path: Path | None, plan: Plan, settings: list[str]
    ) -> dict[str, Any]:
        """Makes a run and keeps its processes."""
        with ExitStack() as stack:
            quiet = Console(quiet=True)  # standard output is the protocol's
            path, running = new_run(
                stack, quiet, asked, steps=steps, plan=plan, run=path, settings=settings
            )
            with self._guard:
                self._sessions[path.resolve()] = running
                self._stack.push(stack.pop_all())
        return {"run": str(path)} | self.results(path)

    def next_prompt(self, path: Path, ask_id: int | None = None) -> dict[str, Any]:
        """The prompt that an ask waits at; without one, a prompt that nobody was given yet."""
        with self._open(path) as (directory, study):
            if ask_id is None:
                waiting = [ask.id for ask in study.open()]
                new = [id for id in waiting if (path.resolve(), id) not in self._handed_out]
                if not new and study.left <= 0:
                    planned = directory.store.run().steps
                    why = f"all {planned} steps are made or handed out"
                    return {"done": True, "why": why, "waiting": waiting}
                ask_id = new[0] if new else study.prompt(MANUAL)[0].id
            self._handed_out.add((path.resolve(), ask_id))
            turn, prompt = study.turn(ask_id)
            if not isinstance(prompt, Prompt):
                raise ToolError(f"ask {ask_id} has been answered and waits for its evaluation")
            return _asked(ask_id, turn, prompt)

    def submit(self, path: Path, ask_id: int, turn: int, text: str) -> dict[str, Any]:
        """Takes a reply; a follow-up, or the verdict on what came of it."""
        with self._open(path) as (directory, study):
            finish: Finish = "complete" if text.strip() else "empty"
            after = study.tell(ask_id, turn - 1, Reply(text, MANUAL, finish))
            if isinstance(after, Prompt):
                return _asked(ask_id, turn, after)
            follow(self._search(directory, path).finish_queued())
            write_report(summary_of(directory.store, directory.path), directory.report_path)
            nodes = directory.store.nodes()
            return _judged(next(node for node in reversed(nodes) if node.proposal == after))

    def results(self, path: Path) -> dict[str, Any]:
        """How far a run is, and a line for each step."""
        with read_run(path) as directory:
            run, nodes = directory.store.run(), directory.store.nodes()
            waiting = directory.store.asks("open", "queued")
        best = _best(nodes)
        return {
            "problem": run.problem.name,
            "steps_made": len(nodes),
            "steps_planned": run.steps,
            "under_way": len(waiting),
            "waiting": [record.ask.id for record in waiting if record.state == "open"],
            "baselines_us": dict(run.reference.baselines_us),
            "best": {"step": best.id, "verdict": verdict(best.evaluation)} if best else None,
            "steps": [
                f"{n.id} (from {n.parent_id}, {n.step_kind}): {verdict(n.evaluation)}"
                for n in nodes
            ],
        }

    def best_kernel(self, path: Path) -> str:
        """The source of the best kernel so far."""
        with read_run(path) as directory:
            best = _best(directory.store.nodes())
        if best is None:
            raise ToolError("no correct kernel yet")
        return best.candidate.source

    @contextmanager
    def _open(self, path: Path) -> Iterator[tuple[RunDirectory, Study]]:
        with self._guard:
            lock = self._locks.setdefault(path.resolve(), threading.Lock())
        with lock, open_run(path) as directory:
            yield directory, study_of(directory)

    def _search(self, directory: RunDirectory, path: Path) -> Search:
        run = directory.store.run()
        with self._guard:
            running = self._sessions.get(path.resolve())
            if running is None:
                running = self._stack.enter_context(open_session(run.problem, run.config))
                self._sessions[path.resolve()] = running
        return Search(directory.store, {}, running.evaluator, directory.best_path)


def serve(transport: Literal["stdio", "http"], host: str, port: int) -> int:
    """Serves until its client leaves or it is interrupted; the exit code."""
    runs = Runs()
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


def build(runs: Runs) -> MCPServer:
    """The server with its tools."""
    server = MCPServer("adaexplore", instructions=INSTRUCTIONS, version=__version__)

    @server.tool()
    def start_run(
        problem: str,
        steps: int = 20,
        run: str | None = None,
        device: str | None = None,
        language: Language | None = None,
        target: TargetName | None = None,
        precision: Precision = "fp32",
        mode: Mode = "as-built",
        require_custom: bool = False,
        seed: int = 0,
        prompts: str | None = None,
        memory: str = "",
        settings: list[str] | None = None,
    ) -> dict[str, Any]:
        """Start a search on a problem: the path of a Python file in KernelBench form (Model,
        get_inputs, get_init_inputs). `prompts` is a folder of templates, `memory` the rules'
        (a file, bundled or none), `settings` are key=value texts; all as `adaexplore start` takes
        them. Returns the run's directory, which the other tools take."""
        asked = Asked(
            Path(problem), language, device, precision, mode, seed, require_custom, target
        )
        folder = str(Path(prompts).resolve()) if prompts else ""
        plan = Plan((MANUAL,), prompts=folder, memory=memory)
        with _told():
            return runs.start(asked, steps, Path(run) if run else None, plan, settings or [])

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
        """How far a run is: every step's verdict, the best one, the baselines' times."""
        with _told():
            return runs.results(Path(run))

    @server.tool()
    def best_kernel(run: str) -> str:
        """The source of the best correct kernel so far."""
        with _told():
            return runs.best_kernel(Path(run))

    return server


@contextmanager
def _told() -> Iterator[None]:
    """What a user would read as one line, an agent gets as the tool's error."""
    try:
        yield
    except AdaExploreError as error:
        raise ToolError(str(error)) from error


def _asked(ask_id: int, turn: int, prompt: Prompt) -> dict[str, Any]:
    messages = [{"role": m.role, "text": m.text} for m in prompt.messages]
    return {"ask": ask_id, "turn": turn + 1, "kind": prompt.label, "messages": messages}


def _judged(node: Node) -> dict[str, Any]:
    return {
        "step": node.id,
        "verdict": verdict(node.evaluation),
        "feedback": render(node.evaluation),
        "evaluation": evaluation_to_json(node.evaluation),
    }


def _best(nodes: list[Node]) -> Node | None:
    passed = [node for node in nodes if isinstance(node.evaluation, Passed)]
    return max(passed, key=lambda node: rank(node.evaluation), default=None)
