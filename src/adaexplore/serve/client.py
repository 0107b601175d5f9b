"""Typed client of the service.

    with Client("https://ada.example.org", token) as client:
        [verdict] = client.evaluate(problem, [candidate], language="cpp")

It needs no package of the service's side.
"""

from __future__ import annotations

import secrets
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import TypeAdapter, ValidationError

from adaexplore.core.errors import AdaExploreError, BadInputError, InfrastructureError
from adaexplore.core.verdict.evaluation import Evaluation
from adaexplore.core.verdict.evaluation_json import evaluation_from_json
from adaexplore.serve.messages import (
    ENDED,
    CampaignOrder,
    EvaluationOrder,
    Health,
    JobEvent,
    JobInfo,
    JobPrompt,
    JobResult,
    ProblemSource,
    PromptReply,
    SearchOrder,
    WireMessage,
)

_PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
_IDLE_S = 60.0
"""Silence after which a stream of events counts as lost; the service sends a sign every 15 s."""
_TRY_AGAIN = {502, 503, 504}
_Answer = TypeVar("_Answer", bound=WireMessage)
_Read = TypeVar("_Read")


class ServiceError(BadInputError):
    """Refusal by the service; `status` is the HTTP status, such as 401 or 429."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class Client:
    """Client of the service at `url`.

    Methods raise `ServiceError` for a request that the service refuses, `BadInputError` for one
    that cannot be made, or where its certificate is not trusted, and `InfrastructureError` where it
    cannot be reached for `patience_s` seconds. SSL_CERT_FILE names the certificate of an authority
    of your own. A request that is sent again after a lost answer does not make a second job. Not
    thread-safe.
    """

    def __init__(self, url: str, token: str, *, patience_s: float = 30.0) -> None:
        self._url = url.rstrip("/")
        self._patience_s = patience_s
        if not _is_address(url):
            raise BadInputError(f"--server {url}: write http://HOST:PORT or https://HOST")
        token = token.strip()
        if not (token.isascii() and token.isprintable()):
            raise BadInputError(f"--server {url}: the token has characters that no token has")
        headers = {"Authorization": f"Bearer {token}"}
        try:
            self._http = httpx.Client(base_url=self._url, headers=headers, timeout=60.0)
        except httpx.InvalidURL as error:
            raise BadInputError(f"--server {url}: {error}") from None
        except OSError as error:
            why = error.strerror or error
            raise BadInputError(f"SSL_CERT_FILE or SSL_CERT_DIR: no certificates: {why}") from None

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def health(self) -> Health:
        """Return the state of the service."""
        return self._get(Health, "/health")

    def submit_evaluation(
        self, problem: ProblemSource, candidates: Sequence[str], options: Mapping[str, Any]
    ) -> JobInfo:
        """Submit candidates of a problem; `options` are fields of `Config`."""
        fields = {"candidates": list(candidates), "options": dict(options)}
        order = _made(EvaluationOrder, "evaluation", problem=problem, **fields)
        return self._submit("/v1/evaluations", order)

    def submit_search(self, problem: ProblemSource, options: Mapping[str, Any]) -> JobInfo:
        """Submit a search."""
        order = _made(SearchOrder, "search", problem=problem, options=dict(options))
        return self._submit("/v1/searches", order)

    def submit_campaign(
        self, problems: Sequence[ProblemSource], options: Mapping[str, Any]
    ) -> JobInfo:
        """Submit a campaign."""
        fields = {"problems": list(problems), "options": dict(options)}
        order = _made(CampaignOrder, "campaign", **fields)
        return self._submit("/v1/campaigns", order)

    def evaluate(
        self, problem: ProblemSource, candidates: Sequence[str], **options: Any
    ) -> list[Evaluation]:
        """Judge candidates and return their evaluations; raises as `wait` does."""
        job = self.submit_evaluation(problem, candidates, options)
        return [evaluation_from_json(verdict) for verdict in self.wait(job.id).verdicts]

    def jobs(self, limit: int = 100) -> list[JobInfo]:
        """Return the user's latest jobs, at most 1,000, the latest first."""
        answer = self._again(lambda: self._http.get("/v1/jobs", params={"limit": limit}))
        return self._understood(TypeAdapter(list[JobInfo]).validate_json, answer)

    def job(self, job_id: str) -> JobInfo:
        """Return a job."""
        return self._get(JobInfo, f"/v1/jobs/{job_id}")

    def result(self, job_id: str) -> JobResult:
        """Return the result of a job that has ended."""
        return self._get(JobResult, f"/v1/jobs/{job_id}/result")

    def cancel(self, job_id: str) -> JobInfo:
        """End a job."""
        answer = self._again(lambda: self._http.post(f"/v1/jobs/{job_id}/cancel"))
        return self._understood(JobInfo.model_validate_json, answer)

    def go_on(self, job_id: str) -> JobInfo:
        """Continue a search or a campaign that was cancelled or failed."""
        answer = self._again(lambda: self._http.post(f"/v1/jobs/{job_id}/continue"))
        return self._understood(JobInfo.model_validate_json, answer)

    def prompts(self, job_id: str) -> list[JobPrompt]:
        """Return the prompts that a search waits with (`proposer="manual"`)."""
        answer = self._again(lambda: self._http.get(f"/v1/jobs/{job_id}/prompts"))
        return self._understood(TypeAdapter(list[JobPrompt]).validate_json, answer)

    def wait_for_prompts(self, job_id: str) -> list[JobPrompt]:
        """Return the prompts of a job once one waits for an answer, none once the job has ended."""
        for pause_s in chain(_PAUSES_S, repeat(_PAUSES_S[-1])):
            prompts = self.prompts(job_id)
            if prompts or self.job(job_id).state in ENDED:
                break
            time.sleep(pause_s)
        return prompts

    def replies(self, job_id: str) -> list[PromptReply]:
        """Return the answers that the prompts of a search have."""
        answer = self._again(lambda: self._http.get(f"/v1/jobs/{job_id}/replies"))
        return self._understood(TypeAdapter(list[PromptReply]).validate_json, answer)

    def reply(self, job_id: str, prompt: JobPrompt, text: str) -> JobInfo:
        """Answer a prompt; the search goes on with the answer. The first one counts."""
        given = _made(PromptReply, "reply", ask=prompt.ask, turn=prompt.turn, reply=text)
        body, path = given.model_dump(mode="json"), f"/v1/jobs/{job_id}/replies"
        answer = self._again(lambda: self._http.post(path, json=body))
        return self._understood(JobInfo.model_validate_json, answer)

    def file(self, job_id: str, name: str) -> bytes:
        """Return a file of a job that has ended."""
        return self._again(lambda: self._http.get(f"/v1/jobs/{job_id}/files/{name}")).content

    def save_files(self, job: JobInfo, folder: Path) -> None:
        """Save all files of a job that has ended; raise `BadInputError` where that fails."""
        for name in job.files:
            target = (folder / name).resolve()
            if not target.is_relative_to(folder.resolve()):
                raise InfrastructureError(f"{self._url}: a file's name leaves the folder: {name!r}")
            content = self.file(job.id, name)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            except OSError as error:
                raise BadInputError(f"cannot write {target}: {error.strerror}") from error

    def events(self, job_id: str, after: int = 0) -> Iterator[JobEvent]:
        """Yield the events of a job until it has ended, also over a restart of the service."""
        since = time.monotonic()
        while True:
            try:
                for event in self._stream(job_id, after):
                    after, since = event.number, time.monotonic()
                    yield event
                    if event.type == "state" and event.text in ENDED:
                        return
            except httpx.TransportError as error:
                self._require_trust(error)
                if time.monotonic() - since > self._patience_s + _IDLE_S:
                    raise InfrastructureError(f"{self._url}: {_lines(error)}") from error
            time.sleep(_PAUSES_S[0])

    def wait(self, job_id: str) -> JobResult:
        """Wait for the end of a job, and for answers to its prompts; return its result.

        Raises `BadInputError` for a job that failed or was cancelled.
        """
        for _ in self.events(job_id):
            pass
        job = self.job(job_id)
        if job.state != "done":
            raise BadInputError(job.error or f"job {job_id} was cancelled")
        return self.result(job_id)

    def _stream(self, job_id: str, after: int) -> Iterator[JobEvent]:
        headers = {"Last-Event-ID": str(after), "Accept": "text/event-stream"}
        path, limits = f"/v1/jobs/{job_id}/events", httpx.Timeout(60.0, read=_IDLE_S)
        with self._http.stream("GET", path, headers=headers, timeout=limits) as answer:
            if answer.status_code in _TRY_AGAIN:
                raise httpx.ConnectError(f"status {answer.status_code}")
            if not answer.is_success:
                answer.read()
                raise _refusal(answer)
            for line in answer.iter_lines():
                if line.startswith("data:"):  # each event is one line of JSON
                    yield JobEvent.model_validate_json(line.removeprefix("data:").strip())

    def _submit(self, path: str, order: WireMessage) -> JobInfo:
        headers = {"Idempotency-Key": secrets.token_hex(16)}
        body = order.model_dump(mode="json")
        answer = self._again(lambda: self._http.post(path, json=body, headers=headers))
        return self._understood(JobInfo.model_validate_json, answer)

    def _get(self, kind: type[_Answer], path: str) -> _Answer:
        answer = self._again(lambda: self._http.get(path))
        return self._understood(kind.model_validate_json, answer)

    def _understood(self, read: Callable[[bytes], _Read], answer: httpx.Response) -> _Read:
        try:
            return read(answer.content)
        except ValidationError:
            raise InfrastructureError(
                f"{self._url} does not answer as `adaexplore serve` of this release does; check "
                "the address"
            ) from None

    def _again(self, ask: Callable[[], httpx.Response]) -> httpx.Response:
        """Ask until the service answers; raise for an answer that is a refusal."""
        deadline = time.monotonic() + self._patience_s
        for number in range(1 << 30):
            try:
                answer = ask()
            except httpx.TransportError as error:
                self._require_trust(error)
                problem = (
                    f"cannot be reached: {_lines(error)}; see that `adaexplore serve` runs there, "
                    "and whether the address begins with http or https"
                )
            else:
                if answer.status_code not in _TRY_AGAIN:
                    break
                problem = f"answers with status {answer.status_code}: {_detail(answer)}"
            if time.monotonic() > deadline:
                raise InfrastructureError(f"{self._url} {problem}")
            time.sleep(_PAUSES_S[min(number, len(_PAUSES_S) - 1)])
        if not answer.is_success:
            raise _refusal(answer)
        return answer

    def _require_trust(self, error: httpx.TransportError) -> None:
        """Raise `BadInputError` for a certificate that is not trusted: no patience mends it."""
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            raise BadInputError(
                f"{self._url}: its certificate is not trusted ({cause.verify_message}); name the "
                "file with the certificate of its authority in SSL_CERT_FILE"
            ) from None


def _refusal(answer: httpx.Response) -> AdaExploreError:
    """Return the error for an answer that refuses, with the service's own words if it has any."""
    place, detail = answer.url.host, _detail(answer)
    if detail == answer.reason_phrase:  # no words of the service
        place += answer.url.path
        failed = answer.is_server_error
        detail += "; the service's log says why" if failed else "; check the address of the service"
    elif answer.status_code == 401:  # those words are for programs that speak HTTP
        detail = "the token (ADAEXPLORE_TOKEN of a command) is wrong, revoked or out of date there"
    return ServiceError(answer.status_code, f"{place}: {detail}")


def _detail(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return answer.reason_phrase


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its port is none
        return False


def _made(kind: type[_Answer], what: str, **fields: Any) -> _Answer:
    """Return a message; raise `BadInputError`, in one line, for fields that no service takes."""
    try:
        return kind(**fields)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        place = "".join(f"{part}: " for part in first["loc"])
        raise BadInputError(f"{what}: {place}{first['msg']}") from None


def _lines(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def problem_of(name: str, source: str) -> ProblemSource:
    """Return a problem to submit, its name made fit: other characters become `_`.

    Raises `BadInputError` for a source that no service takes, such as an empty one.
    """
    fit = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)
    fit = fit.lstrip("-")[:64] or "problem"
    return _made(ProblemSource, f"problem {name}", name=fit, source=source)
