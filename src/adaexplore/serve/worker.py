"""Process of one job: `python -m adaexplore.serve.worker FOLDER FD`, started by `runner`.

It reads the job's order in FOLDER and writes a JSON object a line to the descriptor FD. The code of
the order (reference and candidates) runs in fork servers that confine themselves, never here. When
the service ends, this process ends; when its job is cancelled, it gets SIGINT.

An evaluation leaves a reference that is prepared. Its process then says "ready" and reads, from its
standard input, the folder of a job of the same user with the same problem and options, as often as
there is one.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from adaexplore.core.ask import MANUAL
from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import (
    AdaExploreError,
    BadInputError,
    BadProblemError,
    ClusterGoneError,
    DatabaseGoneError,
    NoClusterError,
)
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.evaluator import Evaluator
from adaexplore.core.protocols.listener import Event, Prepared, follow
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Evaluation
from adaexplore.core.verdict.evaluation_json import evaluation_to_json
from adaexplore.report.campaign.html import render_campaign
from adaexplore.run import explore as application
from adaexplore.run.api import syntax_failure
from adaexplore.run.asks.ask_files import (
    WaitingPrompt,
    ledger_of,
    open_prompts,
    tell_text,
    waiting_prompts,
)
from adaexplore.run.campaign.run import CampaignRun, begin_campaign
from adaexplore.run.outcome.results import summary_of
from adaexplore.run.outcome.uses import with_uses
from adaexplore.run.session import INTERRUPTED, load_problem
from adaexplore.run.verdicts.take_over import judged
from adaexplore.sandbox.walls.isolation import hide
from adaexplore.sandbox.walls.limits import STRANGERS, die_with_parent
from adaexplore.serve.events import EventRow, message_of
from adaexplore.serve.jobs import LOG_NAME, ORDER_NAME, POSTPONED, REPLIES_NAME
from adaexplore.store import export_run, is_run, open_run, read_run
from adaexplore.store.campaign import is_campaign
from adaexplore.store.directory import remove_unfinished

_RUN = "run"
_NO_CLUSTER = "the service's Ray cluster cannot be reached; the job goes on once it can be"
_NO_DATABASE = "the service's database cannot be reached; the job goes on once it can be"
_NO_SPACE = "the service's disk is full; the job goes on once there is space"
Say = Callable[[Mapping[str, Any]], None]


class JobWorker:
    """Carries out the order in a folder; `say` takes its messages, from several threads.

    `next_folder` waits for the folder of the next evaluation of the same problem, None for none.
    """

    def __init__(
        self, folder: Path, say: Say, next_folder: Callable[[], Path | None] = lambda: None
    ) -> None:
        self._folder = folder
        self._next_folder = next_folder
        self._run = folder / _RUN
        self._order: dict[str, Any] = json.loads((folder / ORDER_NAME).read_text("utf-8"))
        self._say = say
        self._config = Config(**self._order["config"]).model_copy(update={"run": str(self._run)})

    def work(self) -> None:
        """Carry out the order to its end. Raises as `adaexplore.explore` does."""
        does = {"evaluation": self._evaluate, "search": self._search, "campaign": self._campaign}
        does[self._order["kind"]]()

    def _hear(self, event: Event) -> None:
        self._say(message_of(event))

    def _problems(self) -> list[Path]:
        """Write the sources of the order's problems into files."""
        place = self._folder / "problems"
        place.mkdir(exist_ok=True)
        files = []
        for problem in self._order["problems"]:
            files.append(place / f"{problem['name']}.py")
            files[-1].write_text(problem["source"], encoding="utf-8")
        return files

    def _evaluate(self) -> None:
        config = self._config.model_copy(update={"run": ""})
        problem = load_problem(self._problems()[0], config)
        with ExitStack() as stack:
            running = follow(application.start_session(stack, problem, config), self._hear)
            facts = running.evaluator.prepare()
            prepared = message_of(Prepared(facts))
            device = running.environment.gpu or problem.device
            prepared["data"] |= {"device": device, "problem_digest": problem.digest}
            sources: list[str] | None = self._order["candidates"]
            while sources is not None:
                self._say(prepared)
                verdicts = self._judge(sources, problem, running.evaluator)
                self._end({"verdicts": verdicts, "labels": dict(facts.labels)}, [])
                sources = self._next_candidates()

    def _judge(self, sources: list[str], problem: Problem, judge: Evaluator) -> list[Any]:
        verdicts = []
        for index, source in enumerate(sources):
            verdict = _verdict(Candidate(source, problem.language), judge)
            verdicts.append(evaluation_to_json(verdict))
            data = {"index": index, "evaluation": verdicts[-1]}
            self._say({"type": "verdict", "text": verdict.status, "data": data})
        return verdicts

    def _next_candidates(self) -> list[str] | None:
        """Wait for another evaluation of the same problem; return its candidates."""
        self._say({"type": "ready"})
        folder = self._next_folder()
        if folder is None:
            return None
        order: dict[str, Any] = json.loads((folder / ORDER_NAME).read_text("utf-8"))
        sources: list[str] = order["candidates"]
        return sources

    def _search(self) -> None:
        [file] = self._problems()
        if is_run(self._run):
            self._take_replies()
            events = application.resume(self._run, Config())
        else:
            remove_unfinished(self._run)
            problem = load_problem(file, self._config)
            order = application.make_order(problem, self._config, self._run, source=file)
            events = application.explore(order)
        prompts: list[WaitingPrompt] = []
        try:
            follow(events, self._hear)
            if self._config.proposer == MANUAL:
                with open_run(self._run) as directory:
                    open_prompts(directory, self._config.parallel)
                    prompts = waiting_prompts(directory)
        finally:
            if is_run(self._run):
                self._end_of_search(prompts)

    def _take_replies(self) -> None:
        """Take the answers to prompts; those that a kill had repeated are there already."""
        replies = json.loads((self._folder / REPLIES_NAME).read_text("utf-8"))
        if not replies:
            return
        with open_run(self._run) as directory:
            ledger = ledger_of(directory)
            for each in replies:
                try:
                    tell_text(directory, ledger, each["ask"], each["turn"], each["reply"])
                except BadInputError as error:
                    self._say({"type": "notice", "text": str(error)})

    def _end_of_search(self, prompts: Sequence[WaitingPrompt]) -> None:
        with read_run(self._run) as directory:
            summary = summary_of(directory.store, self._run)
            export_run(directory.store, self._run / "run.json.xz")
        files = ["best.py", "report.html", "run.json.xz"]
        asked = [
            {"ask": each.ask_id, "turn": each.turn, "purpose": each.purpose, "text": each.text}
            for each in prompts
        ]
        self._end({"headline": summary.headline.sentence}, files, prompts=asked)

    def _campaign(self) -> None:
        files = self._problems()
        if not is_campaign(self._run):
            shutil.rmtree(self._run, ignore_errors=True)
            begin_campaign(files, self._config)
        run = CampaignRun(self._run, lambda name: EventRow(name, self._say))
        over = "interrupted"
        try:
            run.run()
            over = ""
        finally:
            summary = run.summary(over)
            (self._run / "index.html").write_text(render_campaign(summary), encoding="utf-8")
            names = [f"{file.stem}/{name}" for file in files for name in ("best.py", "report.html")]
            self._end({"summary": summary.to_json()}, ["index.html", *names])

    def _end(self, result: Mapping[str, Any], files: list[str], **more: Any) -> None:
        there = [name for name in files if (self._run / name).is_file()]
        self._say({"type": "result", "data": {"result": result, "files": there, **more}})


def _verdict(candidate: Candidate, evaluator: Evaluator) -> Evaluation:
    failed = syntax_failure(candidate)
    return failed or with_uses(judged(evaluator, candidate), candidate, evaluator)


def _next_folder() -> Path | None:
    """Read the folder of the next job, and write what is printed into its log from now on."""
    line = sys.stdin.readline().strip()
    if not line:
        return None
    with (Path(line) / LOG_NAME).open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    return Path(line)


def main() -> None:
    """Run a job; exit code 2 or 3 as for the command line, 130 for a job that was cancelled.

    It is `POSTPONED` where the job waits for its cluster, its database, or space on the disk.
    """
    folder, descriptor = Path(sys.argv[1]).resolve(), int(sys.argv[2])
    die_with_parent(os.getppid())
    os.set_inheritable(descriptor, False)
    hide()
    os.environ[STRANGERS] = str(folder / "problems")
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us without it
    speaking = threading.Lock()

    def say(message: Mapping[str, Any]) -> None:
        text = json.dumps(message).replace(f"{folder}/", "")  # where the service lies is its own
        line = text.encode() + b"\n"
        with speaking:
            while line:
                line = line[os.write(descriptor, line) :]

    try:
        JobWorker(folder, say, _next_folder).work()
    except (ClusterGoneError, NoClusterError) as error:
        print(error, file=sys.stderr)
        say({"type": "notice", "text": _NO_CLUSTER})
        sys.exit(POSTPONED)
    except DatabaseGoneError as error:
        print(error, file=sys.stderr)
        say({"type": "notice", "text": _NO_DATABASE})
        sys.exit(POSTPONED)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        say({"type": "notice", "text": _NO_SPACE})
        sys.exit(POSTPONED)
    except AdaExploreError as error:
        causes = {"bad_input": BadInputError, "bad_problem": BadProblemError}
        data = {name: isinstance(error, kind) for name, kind in causes.items()}
        say({"type": "error", "text": str(error), "data": data})
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
