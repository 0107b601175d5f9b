"""Recorded model calls as files, and a client that replays them.

One file holds one prompt, its label, and every reply of one model to it in order: JSON with sorted
keys and texts as lists of lines, for people to read and compare.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.client import Message, ModelClient, Prompt, Reply, Usage
from adaexplore.core.text.similarity import first_difference, nearest
from adaexplore.llm.wrapping import WrappingClient


class UnseenPromptError(BadInputError):
    """Prompt without a recorded reply; the message names the nearest recorded prompt."""


@dataclass(frozen=True, slots=True)
class RecordedReplies:
    """One prompt and the replies of one model to it, in order."""

    prompt: Prompt
    model: str
    replies: tuple[Reply, ...]


class RecordingClient(WrappingClient):
    """Client that records its calls in a folder, each on disk before its reply is returned.

    Further replies to a recorded prompt are appended. One process at a time may record into a
    folder.
    """

    def __init__(self, client: ModelClient, folder: Path) -> None:
        super().__init__(client)
        self._folder = folder
        self._writing = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInputError(f"{folder}: cannot record there: {error.strerror}") from None

    def ask(self, prompt: Prompt) -> Reply:
        """Return the client's reply, after recording it."""
        reply = self._client.ask(prompt)
        path = self._folder / file_name(prompt, self.model)
        with self._writing:
            earlier = load(path).replies if path.exists() else ()
            save(path, RecordedReplies(prompt, self.model, (*earlier, reply)))
        return reply


class ReplayClient:
    """Client that answers from a folder of recorded calls, without any provider.

    A repeated prompt gets its next reply, the last one once they are used up. A prompt without a
    record raises `UnseenPromptError`. Raises `BadInputError` if the folder holds no call of
    `model`.
    """

    def __init__(self, folder: Path, model: str) -> None:
        self._folder = folder
        self._model = model
        self._asked: Counter[str] = Counter()
        self._counting = threading.Lock()
        if not folder.is_dir():
            raise BadInputError(f"{folder}: no such folder of recorded calls")
        if not any(folder.glob(f"*{_suffix(model)}")):
            recorded = sorted({load(path).model for path in folder.glob("*.json")})
            others = f"only of {', '.join(recorded)}" if recorded else "nor of any other model"
            raise BadInputError(f"{folder}: no calls of {model} are recorded there, {others}")

    @property
    def model(self) -> str:
        """Model whose replies are replayed."""
        return self._model

    def ask(self, prompt: Prompt) -> Reply:
        """Return the next recorded reply to the prompt."""
        path = self._folder / file_name(prompt, self._model)
        if not path.exists():
            raise UnseenPromptError(self._unseen(prompt))
        replies = load(path).replies
        with self._counting:
            turn = self._asked[path.name]
            self._asked[path.name] += 1
        return replies[min(turn, len(replies) - 1)]

    def close(self) -> None:
        """Do nothing; no resource is held."""

    def _unseen(self, prompt: Prompt) -> str:
        asked = _text(prompt)
        paths = sorted(self._folder.glob(f"*{_suffix(self._model)}"))
        recorded = {path.name: _text(load(path).prompt) for path in paths}
        name, _ = nearest(recorded, asked)
        purpose = f" ({prompt.label})" if prompt.label else ""
        return (
            f"no reply of {self._model} to this prompt{purpose} is recorded in {self._folder}; the "
            f"nearest is {name}, which differs first in "
            f"{first_difference(recorded[name], asked, 'asked')}"
        )


def file_name(prompt: Prompt, model: str) -> str:
    """Return the name of the file with the replies of `model` to `prompt`."""
    return f"{prompt.digest[:16]}{_suffix(model)}"


def save(path: Path, call: RecordedReplies) -> None:
    """Write a call atomically: a kill leaves the old file or the new one."""
    data = {
        "label": call.prompt.label,
        "model": call.model,
        "prompt": [
            {"role": message.role, "text": message.text.split("\n")}
            for message in call.prompt.messages
        ],
        "replies": [_reply_to_json(reply) for reply in call.replies],
    }
    text = json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False)
    draft = path.with_suffix(".draft")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise BadInputError(f"{path}: cannot be written: {error.strerror}") from None


def load(path: Path) -> RecordedReplies:
    """Read a call; raise `BadInputError` if the file holds none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        messages = tuple(Message(m["role"], "\n".join(m["text"])) for m in data["prompt"])
        replies = tuple(_reply_from_json(reply, data["model"]) for reply in data["replies"])
        call = RecordedReplies(Prompt(messages, data["label"]), data["model"], replies)
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"{path}: holds no recorded call: {error!r}; record it again") from None
    if not replies:
        raise BadInputError(f"{path}: holds no reply; record it again")
    return call


def _reply_to_json(reply: Reply) -> dict[str, Any]:
    return {
        "attempts": reply.attempts,
        "finish": reply.finish,
        "latency_s": round(reply.latency_s, 3),
        "text": reply.text.split("\n"),
        "usage": reply.usage.to_json(),
    }


def _reply_from_json(data: dict[str, Any], model: str) -> Reply:
    return Reply(
        text="\n".join(data["text"]),
        model=model,
        finish=data["finish"],
        usage=Usage(**data["usage"]),
        latency_s=data["latency_s"],
        attempts=data["attempts"],
    )


def _suffix(model: str) -> str:
    return f".{re.sub(r'[^A-Za-z0-9._-]+', '-', model)}.json"


def _text(prompt: Prompt) -> str:
    """Return the prompt as one text, each message under its role."""
    return "\n".join(f"[{message.role}]\n{message.text}" for message in prompt.messages)
