"""Commands carried out by a service: --server URL."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from adaexplore.cli.options import TOKEN
from adaexplore.cli.terminal.printing import say
from adaexplore.core.errors import BadInputError
from adaexplore.core.files import write_whole
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Evaluation
from adaexplore.core.verdict.evaluation_json import evaluation_from_json
from adaexplore.run.api import read_kernel, read_source
from adaexplore.run.asks.ask_files import read_reply
from adaexplore.run.explore import run_path
from adaexplore.serve.client import Client, problem_of
from adaexplore.serve.messages import JobEvent, JobInfo, JobPrompt, JobResult, ProblemSource
from adaexplore.store import require_free

SHOWN = {"working", "notice", "recorded", "waiting", "stopping", "confirming", "lost"}
"""Types of events that are for people."""


class _PromptsWaitError(Exception):
    """A job goes on once its prompts are answered."""


@dataclass(frozen=True, slots=True)
class JudgedThere:
    """A verdict of a service, with the problem's labels."""

    verdict: Evaluation
    labels: Mapping[str, str]


def evaluate_there(server: str, problem: Path, candidate: Path, config: Config) -> JudgedThere:
    """Have a service judge a candidate. Raises `BadInputError` for a job that fails."""
    with open_service(server) as client:
        source = read_kernel(candidate)
        job = client.submit_evaluation(_problem(problem), [source], _options(config))
        result = _followed(client, job, Console(stderr=True))
    [verdict] = result.verdicts
    return JudgedThere(evaluation_from_json(verdict), result.labels)


def explore_there(server: str, problem: Path, config: Config) -> None:
    """Have a service search, and save the results in the folder of a run."""
    path = run_path(problem.stem, config)
    require_free(path)
    with open_service(server) as client:
        job = client.submit_search(_problem(problem), _options(config))
        try:
            result = _followed(client, job, Console(), save=path)
        except _PromptsWaitError:
            say(Console(), f"its prompts wait for your answers at {server}, or as files:")
            say(Console(), f"  adaexplore jobs ask {job.id} --server {server}")
            return
    say(Console(), f"{result.headline}\n{path}: show it with\n  adaexplore show {path}/run.json.xz")


def campaign_there(server: str, problems: Sequence[Path], config: Config) -> dict[str, Any]:
    """Have a service search several problems, and save the results; return the summary."""
    path = run_path("campaign", config)
    require_free(path)
    with open_service(server) as client:
        job = client.submit_campaign([_problem(file) for file in problems], _options(config))
        result = _followed(client, job, Console(), save=path)
    say(Console(), f"{path / 'index.html'}")
    return result.summary


@contextmanager
def open_service(server: str, patience_s: float = 30.0) -> Iterator[Client]:
    """Yield a client of a service; raise `BadInputError` where there is no token for it."""
    token = os.environ.get(TOKEN)
    if not token:
        raise BadInputError(f"--server {server}: put the service's token into {TOKEN}")
    with Client(server, token, patience_s=patience_s) as client:
        yield client


def require_service(server: str) -> None:
    """Raise where a service cannot be used, by its address, the token or the network."""
    with open_service(server) as client:
        client.jobs(1)


def _problem(file: Path) -> ProblemSource:
    if file.suffix != ".py":
        raise BadInputError(f"{file}: --server takes problems in KernelBench form, as Python files")
    return problem_of(file.stem, read_source(file, "problem"))


def _options(config: Config) -> dict[str, Any]:
    """Return the options that were given, but for the folder, which is here."""
    return config.model_dump(mode="json", include=config.model_fields_set - {"run"})


def line_of(event: JobEvent) -> str:
    """Return an event of a job as a line."""
    text = event.text
    if event.type == "verdict":
        text = f"candidate {event.data['index'] + 1}: {text}"
    return f"{event.problem}: {text}" if event.problem else text


def fetch_job(client: Client, job: JobInfo, folder: Path) -> JobResult:
    """Save the files of a job that has ended, and its result as result.json; return the result."""
    result = client.result(job.id)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"cannot write into {folder}: {error.strerror}") from None
    client.save_files(job, folder)
    write_whole(folder / "result.json", result.model_dump_json(indent=1) + "\n")
    return result


@dataclass(frozen=True, slots=True)
class ToldThere:
    """What became of a reply in a file; `reason` says why it was refused."""

    file: str
    state: Literal["taken", "told before", "refused"]
    reason: str = ""


def tell_there(client: Client, job_id: str, files: Sequence[Path]) -> Iterator[ToldThere]:
    """Send the replies in files that a service does not have; yield what became of each."""
    known = {(each.ask, each.turn): each.reply for each in client.replies(job_id)}
    for file in files:
        try:
            given = read_reply(file)
            if known.get((given.ask_id, given.turn)) == given.text:
                yield ToldThere(str(file), "told before")
                continue
            prompt = JobPrompt(ask=given.ask_id, turn=given.turn, purpose="", text="")
            client.reply(job_id, prompt, given.text)
            yield ToldThere(str(file), "taken")
        except BadInputError as error:
            yield ToldThere(str(file), "refused", str(error))


def _followed(
    client: Client, job: JobInfo, console: Console, save: Path | None = None
) -> JobResult:
    """Show a job until it has ended; Ctrl-C cancels it. Then save its files and return its result.

    Raises `BadInputError` for a job that failed or was cancelled.
    """
    say(console, f"job {job.id} at the service")
    last = 0
    try:
        for event in client.events(job.id):
            last = event.number
            if event.type in SHOWN:
                say(console, line_of(event))
            if (event.type, event.text) == ("state", "waiting"):
                raise _PromptsWaitError
    except KeyboardInterrupt:
        say(console, "cancelling; what is recorded is fetched")
        client.cancel(job.id)
        for _ in client.events(job.id, last):
            pass
    ended = client.job(job.id)
    if save is not None:
        client.save_files(ended, save)
    if ended.state != "done":
        raise BadInputError(f"job {job.id}: {ended.error or ended.state}")
    return client.result(job.id)
