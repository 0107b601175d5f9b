"""Episodes of OpenEnv's environment: a problem, and one candidate judged in each step."""

import hashlib
import json
import random
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import anyio
from fastapi import HTTPException
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from adaexplore.core.errors import BadInputError
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Evaluation, Failed
from adaexplore.llm.code import ReplyError, extract_code
from adaexplore.run.training.prompts import feedback_prompt, task_prompt
from adaexplore.search.named_rewards import REWARDS, reward_of
from adaexplore.serve.accounts import Account
from adaexplore.serve.messages import SOURCE_CHARACTERS, Options, ProblemSource
from adaexplore.serve.options import Bounds, config_of
from adaexplore.serve.quotas import QuotaError
from adaexplore.serve.trainers.judging import Attempt, Judging
from adaexplore.serve.trainers.splits import Split

MOST_TURNS = 100
_LOOK_S = 0.5


class TryAgainError(Exception):
    """A step without a verdict, which counts nowhere; the same step may be sent again."""


class Reset(BaseModel):
    """What begins an episode; an unknown field is an error.

    The problem is that at `index` of the split (default: the first split), or one that `seed`
    chooses. `options` are those of an evaluation. `reward` names one of `search.named_rewards`. A
    step waits `wait_s` seconds for its verdict.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    split: str = ""
    index: Annotated[int | None, Field(ge=0)] = None
    seed: int | None = None
    episode_id: Annotated[str | None, Field(min_length=1, max_length=255)] = None
    options: Options = {}
    reward: str = "log"
    max_turns: Annotated[int, Field(ge=1, le=MOST_TURNS)] = 4
    wait_s: Annotated[float, Field(ge=0, le=600)] = 50.0


class Action(BaseModel):
    """A candidate: a module that defines `ModelNew`, or a reply with one in a fenced block."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="KernelAction")

    code: Annotated[str, Field(max_length=SOURCE_CHARACTERS)]
    metadata: dict[str, Any] = {}


class Observation(BaseModel):
    """What a policy sees: `prompt` is the task, or the verdict on the last step in words.

    `status` is that of the last verdict, and `speedup` the one over the strongest baseline, None
    where nothing was measured.
    """

    prompt: str
    problem: str
    split: str
    index: int
    episode_id: str
    turn: int
    max_turns: int
    status: str = ""
    speedup: float | None = None
    best_speedup: float | None = None


class State(BaseModel):
    """State of an episode."""

    episode_id: str | None = None
    step_count: int = 0
    split: str = ""
    index: int = 0
    problem: str = ""
    done: bool = False
    best_speedup: float | None = None


@dataclass(slots=True)
class Episode:
    """An episode under way, of the `user` who began it."""

    user: str
    order: Reset
    split: str
    index: int
    problem: ProblemSource
    prompt: str
    id: str
    turn: int = 0
    best_speedup: float | None = None
    judged: set[tuple[int, str]] = field(default_factory=set)
    """The turns that count, each with its code: a client may send a step again."""

    @property
    def is_done(self) -> bool:
        """True once the last turn was judged."""
        return self.turn >= self.order.max_turns

    @property
    def state(self) -> State:
        """The state in OpenEnv's words."""
        return State(
            episode_id=self.id,
            step_count=self.turn,
            split=self.split,
            index=self.index,
            problem=self.problem.name,
            done=self.is_done,
            best_speedup=self.best_speedup,
        )

    def observation(self, prompt: str, **seen: Any) -> dict[str, Any]:
        """Return the observation, as the protocol has it."""
        found = Observation(
            prompt=prompt,
            problem=self.problem.name,
            split=self.split,
            index=self.index,
            episode_id=self.id,
            turn=self.turn,
            max_turns=self.order.max_turns,
            best_speedup=self.best_speedup,
            **seen,
        )
        return found.model_dump()


class Episodes:
    """Begins episodes on the problems of `splits`, and judges their steps."""

    def __init__(
        self, judging: Judging, splits: Mapping[str, Split], bounds: Bounds, language: str
    ) -> None:
        self._judging = judging
        self._splits = splits
        self._bounds = bounds
        self._language = language

    def reset(self, account: Account, order: Reset) -> tuple[Episode, dict[str, Any]]:
        """Begin an episode; return it with its first answer.

        Raises `BadInputError` for a split, an index, an option or a reward that there is not.
        """
        if order.reward not in REWARDS:
            known = ", ".join(REWARDS)
            raise BadInputError(f"reward {order.reward[:64]!r}: there are {known}")
        config = config_of(self._options(order), self._bounds)
        split = self.split(order.split)
        index = order.index
        if index is None:
            index = random.Random(order.seed).randrange(len(split.problems))
        problem = self.problem(split, index)
        name = order.episode_id or secrets.token_hex(12)
        prompt = _prompt(problem.source, config)
        episode = Episode(account.user, order, split.name, index, problem, prompt, name)
        return episode, _answer(episode.observation(prompt), None, done=False)

    async def step(self, account: Account, episode: Episode, action: Action) -> dict[str, Any]:
        """Judge a candidate; return the answer.

        Raises `TryAgainError` where there is no verdict yet, `BadInputError` for an episode that is
        over and for a problem that cannot be judged.
        """
        if episode.is_done:
            raise BadInputError("the episode is over; reset")
        step = episode.turn, action.code
        verdict = await self._verdict(account, episode, action)
        if step not in episode.judged:
            episode.judged.add(step)
            episode.turn += 1
        timing = verdict.measured
        speedup = timing.speedup if timing else None
        if speedup is not None:
            episode.best_speedup = max(speedup, episode.best_speedup or 0.0)
        seen = episode.observation(feedback_prompt(verdict), status=verdict.status, speedup=speedup)
        return _answer(seen, reward_of(episode.order.reward, verdict), done=episode.is_done)

    def split(self, name: str) -> Split:
        """Return a split; the first for the empty name."""
        chosen = name or next(iter(self._splits))
        if chosen not in self._splits:
            raise BadInputError(f"split {name[:64]!r}: there are {', '.join(self._splits)}")
        return self._splits[chosen]

    def problem(self, split: Split, index: int) -> ProblemSource:
        """Return the problem of a split at an index."""
        if not 0 <= index < len(split.problems):
            raise BadInputError(f"index {index}: split {split.name} has {len(split.problems)}")
        return split.problems[index]

    def _options(self, order: Reset) -> dict[str, Any]:
        return {"language": self._language, **order.options}

    async def _verdict(self, account: Account, episode: Episode, action: Action) -> Evaluation:
        try:
            code = extract_code(action.code)
        except ReplyError as error:
            return Failed("compile_error", str(error).partition("\n")[0], str(error))
        options = self._options(episode.order)
        content = json.dumps([episode.problem.source, options, code], sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()
        # The same code on the same turn is the same task: a step that is sent again joins it.
        name = f"openenv:{episode.id}:{episode.turn}:{digest}"
        attempt = Attempt(episode.problem, code, options)
        until = time.monotonic() + episode.order.wait_s
        await self._submit(account, name, attempt, until)
        outcome = await self._judging.wait(account, name, until - time.monotonic())
        if outcome.verdict:
            return outcome.verdict
        if outcome.error:
            raise BadInputError(f"the problem cannot be judged: {outcome.error}")
        raise TryAgainError(f"no verdict yet (the job is {outcome.state}); send the step again")

    async def _submit(self, account: Account, name: str, attempt: Attempt, until: float) -> None:
        """Queue a step, once one of the user's jobs has ended where they have as many as may."""
        while True:
            try:
                await run_in_threadpool(self._judging.submit, account, name, attempt)
            except QuotaError as error:
                if not error.is_brief:
                    raise HTTPException(429, str(error), {"Retry-After": "3600"}) from None
                if time.monotonic() > until:
                    raise TryAgainError(f"{error}; send the step again") from None
                await anyio.sleep(_LOOK_S)
            else:
                return


def _prompt(source: str, config: Config) -> str:
    language = config.language
    assert language
    return task_prompt(source, language, config.precision, backward=config.with_backward)


def _answer(observation: dict[str, Any], reward: float | None, *, done: bool) -> dict[str, Any]:
    return {"observation": observation, "reward": reward, "done": done}
