"""OpenEnv's protocol (meta-pytorch/OpenEnv) below `/openenv`: routes, and a socket for episodes.

Clients give their token in the URL, `http://x:ada_...@host/openenv`, or in a header. A step without
a verdict is an error to try again, never a reward.

FastAPI reads the annotations of routes, which name local types: they are no texts here.
"""

import asyncio
import json
import logging
from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy.exc import DBAPIError

from adaexplore.core.errors import BadInputError
from adaexplore.core.version import __version__
from adaexplore.serve.accounts import Account
from adaexplore.serve.http.access import AccessGate, require
from adaexplore.serve.http.audit import log_message
from adaexplore.serve.tables import why_unreachable
from adaexplore.serve.trainers.episodes import (
    Action,
    Episode,
    Episodes,
    Observation,
    Reset,
    State,
    TryAgainError,
)
from adaexplore.serve.trainers.splits import Split

NAME = "adaexplore"
_MOST_SOCKETS = 64
_MOST_EPISODES = 256
"""Episodes that a user may have begun by POST; the oldest is dropped."""
_IDLE_S = 1800.0
_AGAIN_S = "10"
Json = dict[str, Any]


class Step(BaseModel):
    """A step by POST: the action, and the `episode_id` that the reset returned."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    action: Action
    episode_id: str


class InSplit(BaseModel):
    """Names a split, or problems in it."""

    split: str
    index: int = 0
    start: Annotated[int | None, Field(ge=0)] = None
    stop: Annotated[int | None, Field(ge=0)] = None


def add_openenv(
    app: FastAPI,
    episodes: Episodes,
    splits: Mapping[str, Split],
    gate: AccessGate,
    audit: logging.Logger,
) -> None:
    """Add the routes and the socket to an application."""
    caller = Annotated[Account, Depends(gate.account)]
    sockets = _Sockets(episodes, gate, audit)
    begun: dict[str, OrderedDict[str, Episode]] = {}

    def find(account: Account, episode_id: str) -> Episode:
        episode = begun.get(account.user, OrderedDict()).get(episode_id)
        if episode is None:
            raise HTTPException(404, "no such episode; POST /openenv/reset begins one")
        return episode

    @app.get("/openenv/health")
    def health() -> Json:
        """Return that the environment is there."""
        return {"status": "healthy"}

    @app.get("/openenv/metadata")
    def metadata(_: caller) -> Json:
        """Return what the environment is."""
        about = "Write a faster kernel for a PyTorch module; each step judges one."
        return {"name": NAME, "description": about, "version": __version__}

    @app.get("/openenv/schema")
    def schema(_: caller) -> Json:
        """Return the JSON schemas of actions, observations and states."""
        found: dict[str, type[BaseModel]] = {
            "action": Action,
            "observation": Observation,
            "state": State,
        }
        return {name: model.model_json_schema() for name, model in found.items()}

    @app.post("/openenv/reset")
    def reset(account: caller, order: Reset | None = None) -> Json:
        """Begin an episode."""
        require(account, "evaluate")
        episode, answer = episodes.reset(account, order or Reset())
        mine = begun.setdefault(account.user, OrderedDict())
        mine[episode.id] = episode
        while len(mine) > _MOST_EPISODES:
            mine.popitem(last=False)
        return answer

    @app.post("/openenv/step")
    async def step(order: Step, account: caller) -> Json:
        """Judge a candidate; 503 where there is no verdict yet: send the step again."""
        try:
            return await episodes.step(account, find(account, order.episode_id), order.action)
        except TryAgainError as error:
            raise HTTPException(503, str(error), {"Retry-After": _AGAIN_S}) from None

    @app.get("/openenv/state")
    def state(account: caller, episode_id: str) -> State:
        """Return the state of an episode."""
        return find(account, episode_id).state

    @app.websocket("/openenv/ws")
    async def socket(websocket: WebSocket) -> None:
        await sockets.serve(websocket)

    _add_tasks(app, episodes, splits, caller)


def _add_tasks(app: FastAPI, episodes: Episodes, splits: Mapping[str, Split], caller: Any) -> None:
    """Add the routes that list splits and their tasks."""

    def tasks_of(order: InSplit, start: int, stop: int | None) -> list[Json]:
        problems = list(enumerate(episodes.split(order.split).problems))[start:stop]
        return [
            {"split": order.split, "index": index, "name": p.name, "reference": p.source}
            for index, p in problems
        ]

    def check(env: str) -> None:
        if env.lower() != NAME:
            raise HTTPException(404, f"no such environment; there is {NAME}")

    @app.get("/openenv/list_environments")
    def list_environments(_: caller) -> list[str]:
        """Return the names of the environments."""
        return [NAME]

    @app.get("/openenv/{env}/splits")
    def list_splits(env: str, _: caller) -> list[Json]:
        """Return the splits, with the numbers of their tasks."""
        check(env)
        return [
            {"name": split.name, "type": split.type, "num_tasks": len(split.problems)}
            for split in splits.values()
        ]

    @app.post("/openenv/{env}/num_tasks")
    def num_tasks(env: str, order: InSplit, _: caller) -> Json:
        """Return the number of tasks of a split."""
        check(env)
        return {"num_tasks": len(episodes.split(order.split).problems)}

    @app.post("/openenv/{env}/tasks")
    def tasks(env: str, order: InSplit, _: caller) -> Json:
        """Return the tasks of a split."""
        check(env)
        return {"tasks": tasks_of(order, 0, None), "env_name": NAME}

    @app.post("/openenv/{env}/task")
    def task(env: str, order: InSplit, _: caller) -> Json:
        """Return a task."""
        check(env)
        episodes.problem(episodes.split(order.split), order.index)
        return {"task": tasks_of(order, order.index, order.index + 1)[0]}

    @app.post("/openenv/{env}/task_range")
    def task_range(env: str, order: InSplit, _: caller) -> Json:
        """Return tasks from `start` to before `stop`."""
        check(env)
        return {"tasks": tasks_of(order, order.start or 0, order.stop)}


class _Sockets:
    """Serves sockets, each with an episode of its own."""

    def __init__(self, episodes: Episodes, gate: AccessGate, audit: logging.Logger) -> None:
        self._episodes = episodes
        self._gate = gate
        self._audit = audit
        self._open: Counter[str] = Counter()

    async def serve(self, websocket: WebSocket) -> None:
        """Answer the messages of a socket until it is closed, or nothing came for long."""
        try:
            account = self._gate.account_of(websocket)
            require(account, "evaluate")
        except HTTPException as error:
            refusal = JSONResponse({"detail": error.detail}, error.status_code, error.headers)
            await websocket.send_denial_response(refusal)
            return
        except DBAPIError as error:
            refusal = JSONResponse({"detail": why_unreachable(error)}, 503)
            await websocket.send_denial_response(refusal)
            return
        await websocket.accept()
        if self._open[account.user] >= _MOST_SOCKETS:
            said = f"{_MOST_SOCKETS} sockets are open, your most"
            await websocket.send_text(_error(said, "CAPACITY_REACHED"))
            await websocket.close(1013)
            return
        self._open[account.user] += 1
        try:
            await self._serve(websocket)
        except (WebSocketDisconnect, TimeoutError):
            pass
        finally:
            self._open[account.user] -= 1

    async def _serve(self, websocket: WebSocket) -> None:
        episode: Episode | None = None
        while True:
            async with asyncio.timeout(_IDLE_S):
                text = await websocket.receive_text()
            try:
                account = self._gate.account_of(websocket)  # a token may have been revoked
                message = json.loads(text)
                kind, data = message["type"], message.get("data") or {}
                log_message(self._audit, websocket, str(kind)[:16])
                if kind == "close":
                    await websocket.close()
                    return
                if kind == "reset":
                    episode, answer = self._episodes.reset(account, Reset(**data))
                elif kind == "step":
                    if episode is None:
                        raise BadInputError("no episode; reset begins one")
                    answer = await self._episodes.step(account, episode, Action(**data))
                elif kind == "state":
                    found = episode.state if episode else State()
                    answer = found.model_dump()
                else:
                    await websocket.send_text(_error("unknown type of message", "UNKNOWN_TYPE"))
                    continue
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                await websocket.send_text(_refusal(error))
            except (BadInputError, TryAgainError, HTTPException) as error:
                said = error.detail if isinstance(error, HTTPException) else str(error)
                await websocket.send_text(_error(said, "EXECUTION_ERROR"))
            except DBAPIError as error:
                await websocket.send_text(_error(why_unreachable(error), "EXECUTION_ERROR"))
            else:
                kind = "state" if kind == "state" else "observation"
                await websocket.send_text(json.dumps({"type": kind, "data": answer}))


def _refusal(error: Exception) -> str:
    """Return the answer to a message of another form."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        return _error(f"{place}: {first['msg']}", "VALIDATION_ERROR")
    if isinstance(error, json.JSONDecodeError):
        return _error("the message is no JSON", "INVALID_JSON")
    return _error('write {"type": ..., "data": {...}}', "VALIDATION_ERROR")


def _error(message: str, code: str) -> str:
    return json.dumps({"type": "error", "data": {"message": message, "code": code}})
