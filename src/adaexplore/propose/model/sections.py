"""Prompts that keep their sections, with the token cost of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from adaexplore.core.protocols.client import Message, Prompt
from adaexplore.core.text.units import estimated_tokens

SYSTEM = "system"
"""Name of the section for the system message; all others form one user message."""

REPLY = "reply"
"""Name of the section for the model's earlier replies in a conversation."""

_SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True)
class Section:
    """A named part of a prompt."""

    name: str
    text: str

    @property
    def tokens(self) -> int:
        """Estimated number of tokens."""
        return estimated_tokens(self.text)


@dataclass(frozen=True, slots=True)
class SectionedPrompt(Prompt):
    """A prompt and its sections, in order."""

    sections: tuple[Section, ...] = ()

    @property
    def costs(self) -> dict[str, int]:
        """Estimated number of tokens by section name."""
        costs: Counter[str] = Counter()
        for section in self.sections:
            costs[section.name] += section.tokens
        return dict(costs)

    def after(self, reply: str, answer: str, label: str = "") -> SectionedPrompt:
        """Return the continued conversation; everything so far is sent again."""
        return self.then(reply, [Section(label or self.label, answer)], label)

    def then(self, reply: str, sections: Iterable[Section], label: str = "") -> SectionedPrompt:
        """Return the conversation, continued by a reply and by sections; empty ones are omitted."""
        kept = [section for section in sections if section.text]
        answer = _SEPARATOR.join(section.text for section in kept)
        continued = Prompt.after(self, reply, answer, label)
        every = (*self.sections, Section(REPLY, reply), *kept)
        return SectionedPrompt(continued.messages, continued.label, every)


def assembled(label: str, sections: Iterable[Section]) -> SectionedPrompt:
    """Return a prompt of these sections, without the empty ones."""
    kept = tuple(section for section in sections if section.text)
    system = [Message("system", s.text) for s in kept if s.name == SYSTEM]
    user = _SEPARATOR.join(s.text for s in kept if s.name != SYSTEM)
    return SectionedPrompt((*system, Message("user", user)), label, kept)
