"""A prompt that remembers its sections, so that what each of them costs can be told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from adaexplore.core.client import Message, Prompt
from adaexplore.core.units import estimated_tokens

SYSTEM = "system"
"""The section that becomes the system message; all others are the user's, in one message."""

SAID = "reply"
"""The section of what the model said before, in a conversation that goes on."""

_SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True)
class Section:
    """A named part of a prompt."""

    name: str
    text: str

    @property
    def tokens(self) -> int:
        """About how many tokens it costs."""
        return estimated_tokens(self.text)


@dataclass(frozen=True, slots=True)
class SectionedPrompt(Prompt):
    """A prompt and the sections it was put together from, in order."""

    sections: tuple[Section, ...] = ()

    @property
    def costs(self) -> dict[str, int]:
        """About how many tokens each section costs, by its name."""
        costs: Counter[str] = Counter()
        for section in self.sections:
            costs[section.name] += section.tokens
        return dict(costs)

    def after(self, reply: str, answer: str, label: str = "") -> SectionedPrompt:
        """The conversation that goes on: everything so far is sent again."""
        told = Prompt.after(self, reply, answer, label)
        sections = (*self.sections, Section(SAID, reply), Section(told.label, answer))
        return SectionedPrompt(told.messages, told.label, sections)


def assembled(label: str, sections: Iterable[Section]) -> SectionedPrompt:
    """A prompt of these sections; those without text are left out."""
    kept = tuple(section for section in sections if section.text)
    told = [Message("system", s.text) for s in kept if s.name == SYSTEM]
    asked = _SEPARATOR.join(s.text for s in kept if s.name != SYSTEM)
    return SectionedPrompt((*told, Message("user", asked)), label, kept)
