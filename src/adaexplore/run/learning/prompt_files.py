"""Prompts and their replies as files, for a model or for a person: each is asked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from adaexplore.core.ask import MANUAL
from adaexplore.core.errors import BadInputError
from adaexplore.core.files import write_whole
from adaexplore.core.protocols.client import Prompt, Reply

Ask = Callable[[Prompt], Reply]


@dataclass(slots=True)
class PromptFiles:
    """A folder of prompts `NAME.md` with replies `NAME.reply.md`.

    Without `ask`, prompts wait there for a person, and `open` lists those that have no reply.
    Raises `BadInputError` for a folder that cannot be made.
    """

    folder: Path
    ask: Ask | None = None
    open: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInputError(f"cannot make {self.folder}: {error.strerror}") from None

    def reply(self, name: str, prompt: Prompt) -> Reply | None:
        """Return the reply to a prompt, None while it waits; a complete reply is kept."""
        answer = self.folder / f"{name}.reply.md"
        if not answer.exists():
            question = self.folder / f"{name}.md"
            write_whole(question, _as_text(prompt))
            if self.ask is None:
                self.open.append(question)
                return None
            reply = self.ask(prompt)
            if reply.finish != "complete":
                return reply
            write_whole(answer, reply.text)
        text = answer.read_text(encoding="utf-8", errors="replace")
        return Reply(text, MANUAL, "complete" if text.strip() else "empty")


def _as_text(prompt: Prompt) -> str:
    return "\n\n".join(f"# {message.role}\n\n{message.text}" for message in prompt.messages) + "\n"
