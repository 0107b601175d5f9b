"""Runs that coding agents answer: prompts and replies as plain data, for any protocol."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from adaexplore.core.ask import MANUAL
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import Node, planned_steps
from adaexplore.core.protocols.client import Finish, Prompt, Reply
from adaexplore.core.protocols.listener import follow
from adaexplore.core.settings.config import Config
from adaexplore.core.text.feedback import render, verdict
from adaexplore.core.verdict.evaluation_json import evaluation_to_json
from adaexplore.run.asks.ask_files import ledger_of
from adaexplore.run.asks.ledger import Ledger
from adaexplore.run.explore import begin, make_order, run_path
from adaexplore.run.outcome.results import summary_of, write_report_of
from adaexplore.run.search import Search
from adaexplore.run.session import Session, load_problem, open_session
from adaexplore.store import RunDirectory, open_run, read_run


class AgentRuns:
    """The runs that agents answer, each with the processes that evaluate its candidates.

    Calls for one run are serialized; calls for several runs are concurrent.
    """

    def __init__(self) -> None:
        self._sessions: dict[Path, Session] = {}
        self._locks: dict[Path, threading.Lock] = {}
        self._handed_out: set[tuple[Path, int]] = set()
        self._stack = ExitStack()
        self._guard = threading.Lock()

    def close(self) -> None:
        """End all processes."""
        self._stack.close()

    def start(self, problem: Path, config: Config) -> dict[str, Any]:
        """Make a run and keep its processes; raises as `run.explore.make_order` does."""
        with ExitStack() as stack:
            loaded = load_problem(problem, config)
            path = run_path(loaded.name, config)
            order = make_order(loaded, config, path, source=problem)
            directory, running = follow(begin(stack, order))
            if config.start_from:
                best = directory.best_path
                follow(Search(directory.store, {}, running.evaluator, best).start())
            directory.close()
            with self._guard:
                self._sessions[path.resolve()] = running
                self._stack.push(stack.pop_all())
        return {"run": str(path)} | self.results(path)

    def next_prompt(self, path: Path, ask_id: int | None = None) -> dict[str, Any]:
        """Return the prompt that an ask waits at; without `ask_id`, a prompt that is new."""
        with self._open(path) as (directory, ledger):
            if ask_id is None:
                waiting = [ask.id for ask in ledger.open() if ledger.batches.waits_for(ask) is None]
                new = [id for id in waiting if (path.resolve(), id) not in self._handed_out]
                if not new and ledger.left <= 0:
                    planned = directory.store.run().steps
                    why = f"all {planned} steps are made or handed out"
                    return {"done": True, "why": why, "waiting": waiting}
                ask_id = new[0] if new else ledger.prompt(MANUAL)[0].id
            self._handed_out.add((path.resolve(), ask_id))
            turn, prompt = ledger.turn(ask_id)
            if not isinstance(prompt, Prompt):
                raise BadInputError(f"ask {ask_id} has been answered and waits for its evaluation")
            return _asked(ask_id, turn, prompt)

    def submit(self, path: Path, ask_id: int, turn: int, text: str) -> dict[str, Any]:
        """Take a reply; return a follow-up prompt, or the verdict on the candidate."""
        with self._open(path) as (directory, ledger):
            finish: Finish = "complete" if text.strip() else "empty"
            after = ledger.tell(ask_id, turn - 1, Reply(text, MANUAL, finish))
            if isinstance(after, Prompt):
                return _asked(ask_id, turn, after)
            follow(self._search(directory, path).finish_queued())
            write_report_of(directory)
            nodes = directory.store.nodes()
            return _judged(next(node for node in reversed(nodes) if node.proposal == after))

    def results(self, path: Path) -> dict[str, Any]:
        """Return the progress of a run, with a line for each step."""
        with read_run(path) as directory:
            run, nodes = directory.store.run(), directory.store.nodes()
            waiting = directory.store.asks("open", "queued")
            best = summary_of(directory.store, path).best
        return {
            "problem": run.problem.name,
            "steps_made": len(planned_steps(nodes)),
            "steps_planned": run.steps,
            "under_way": len(waiting),
            "waiting": [record.ask.id for record in waiting if record.state == "open"],
            "baselines_us": dict(run.reference.baselines_us),
            "best": {"step": best.node.id, "verdict": verdict(best.node.evaluation)}
            if best
            else None,
            "steps": [
                f"{n.id} (from {n.parent_id}, {n.step_kind}): {verdict(n.evaluation)}"
                for n in nodes
            ],
        }

    def best_kernel(self, path: Path) -> str:
        """Return the source of the best kernel so far."""
        with read_run(path) as directory:
            best = summary_of(directory.store, path).best
        if best is None:
            raise BadInputError("no correct kernel yet")
        return best.node.candidate.source

    @contextmanager
    def _open(self, path: Path) -> Iterator[tuple[RunDirectory, Ledger]]:
        with self._guard:
            lock = self._locks.setdefault(path.resolve(), threading.Lock())
        with lock, open_run(path) as directory:
            yield directory, ledger_of(directory)

    def _search(self, directory: RunDirectory, path: Path) -> Search:
        run = directory.store.run()
        with self._guard:
            running = self._sessions.get(path.resolve())
            if running is None:
                running = self._stack.enter_context(open_session(run.problem, run.config))
                self._sessions[path.resolve()] = running
        return Search(directory.store, {}, running.evaluator, directory.best_path)


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
