"""Messages between the service and its clients, typed and stated once."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["evaluation", "search", "campaign"]
State = Literal["queued", "running", "waiting", "done", "failed", "cancelled"]
"""A job that is "waiting" needs answers to its prompts, and has no process."""
Scope = Literal["evaluate", "search", "campaign", "models", "metrics"]
"""Rights of a token: the kinds of jobs, asking the server's language models, reading `/metrics`."""

ENDED: tuple[State, ...] = ("done", "failed", "cancelled")
RESUMABLE: tuple[State, ...] = ("cancelled", "failed")
"""States from which a search or a campaign can be continued."""
SOURCE_CHARACTERS = 1_000_000
MOST_CANDIDATES = 1000
MOST_PROBLEMS = 500
MOST_NUMBER = 2**31 - 1
"""The greatest number that a column of the database holds."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$")]
"""A name of a problem: it becomes the name of a file and of a folder."""
Source = Annotated[str, Field(min_length=1, max_length=SOURCE_CHARACTERS)]
Options = Annotated[dict[str, Any], Field(max_length=60)]


class WireMessage(BaseModel):
    """Base of all messages; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ProblemSource(WireMessage):
    """A problem in KernelBench form, as text."""

    name: Name = "problem"
    source: Source


class EvaluationOrder(WireMessage):
    """Candidates to judge against one problem: the sources of modules with `ModelNew`."""

    problem: ProblemSource
    candidates: Annotated[list[Source], Field(min_length=1, max_length=MOST_CANDIDATES)]
    options: Options = {}


class SearchOrder(WireMessage):
    """A search on one problem."""

    problem: ProblemSource
    options: Options = {}


class CampaignOrder(WireMessage):
    """A search over several problems with different names, within one budget."""

    problems: Annotated[list[ProblemSource], Field(min_length=1, max_length=MOST_PROBLEMS)]
    options: Options = {}


class JobInfo(WireMessage):
    """A job: times are seconds since the epoch, `candidates` what it counts against the quota.

    `error` is one line where the job failed. `files` can be fetched once the job has ended.
    """

    id: str
    kind: Kind
    state: State
    problem: str
    candidates: int
    created_at: float
    started_at: float | None = None
    ended_at: float | None = None
    error: str = ""
    files: list[str] = []


class JobEvent(WireMessage):
    """Progress of a job. Events of a job are numbered 1, 2, 3, ...

    `type` is "state", or the name of an event of a search in lower case ("working", "notice",
    "recorded", ...), or "verdict". `problem` is the problem of a campaign that it belongs to.
    """

    number: int
    type: str
    text: str = ""
    problem: str = ""
    data: dict[str, Any] = {}


class JobPrompt(WireMessage):
    """A prompt of a search that is answered by hand: prompt number `turn` (from 0) of an ask."""

    ask: int
    turn: int
    purpose: str
    text: str


class PromptReply(WireMessage):
    """The reply to a prompt."""

    ask: Annotated[int, Field(ge=1, le=MOST_NUMBER)]
    turn: Annotated[int, Field(ge=0, le=MOST_NUMBER)]
    reply: Source


class JobResult(WireMessage):
    """Result of a job that has ended.

    `verdicts` are the evaluations of an evaluation job in the order of its candidates, in the form
    that `adaexplore evaluate --json` prints. `labels` are the problem's. `headline` sums up a
    search. `summary` is that of a campaign, in the form of `adaexplore campaign --json`.
    `bad_input` is true where a job failed by its order, and `bad_problem` where its problem is the
    reason, such as a reference that cannot be judged.
    """

    verdicts: list[dict[str, Any]] = []
    labels: dict[str, str] = {}
    headline: str = ""
    summary: dict[str, Any] = {}
    bad_input: bool = False
    bad_problem: bool = False


class Health(WireMessage):
    """State of the service; its device is "cpu" or "cuda", empty where a cluster has them."""

    version: str
    queued: int
    running: int
    device: str = ""
