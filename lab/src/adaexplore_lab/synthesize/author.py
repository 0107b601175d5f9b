"""Tasks by a language model, asked in four styles."""

from __future__ import annotations

import ast
import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from adaexplore.core import Message, ModelClient, Prompt
from adaexplore.llm import ReplyError, Templates, extract_code
from adaexplore_lab.synthesize.draft import MAX_ELEMENTS
from adaexplore_lab.synthesize.task import Style, SyntheticTask

TEMPLATES: Mapping[str, Sequence[str]] = {
    "system.j2": ("most_elements",),
    "self_instruct.j2": ("examples",),
    "mutation.j2": ("examples", "change"),
    "creative.j2": ("topics",),
    "composite.j2": ("examples",),
    "again.j2": ("reason",),
}
"""Every template, with its variables."""

SHOWN: Mapping[Style, int] = {"self-instruct": 3, "mutation": 1, "creative": 0, "composite": 2}
"""How many tasks each style shows the model."""

CHANGES = (
    "reduce, normalize or scan over another axis",
    "give one operand a shape that has to be broadcast",
    "work on inputs that are not contiguous: transposed, strided or expanded",
    "use sizes that no block divides: primes, and one axis of size 1",
    "look rows up by an integer index that comes as another input",
    "replace the last operation by a reduction that needs two passes",
    "put a mask that comes as another input into the middle",
    "return a second output that shares most of the work",
    "work in bfloat16 with one step in float32",
    "add a residual branch around the most expensive operation",
)
"""What a mutation changes."""

TOPICS = (
    *("segment sums", "prefix sums", "ragged batches", "nearest neighbours", "histograms"),
    *("sliding windows", "ranking losses", "contrastive losses", "online softmax", "quantization"),
    *("beam scores", "routing to experts", "rotary embeddings", "linear recurrences"),
    *("graph message passing", "bilinear pooling", "interpolation on a grid", "top-k filtering"),
    *("masked statistics", "block-sparse products", "polynomial features", "signal smoothing"),
    *("state space models", "low-rank updates", "color conversion", "distance matrices"),
)
"""What creative tasks may be about."""

_TURNS = 2  # a reply that cannot be used is told why once
_TOPICS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Unusable:
    """A model's answer without a task, and why in one line."""

    style: Style
    why: str


class Author:
    """Asks a model for tasks. What `ModelClient.ask` raises comes through."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        own = files("adaexplore_lab.synthesize") / "templates"
        self._templates = Templates(own, {}, TEMPLATES)

    def write(
        self, style: Style, rng: random.Random, known: Sequence[SyntheticTask]
    ) -> SyntheticTask | Unusable:
        """A task in this style, which shows the model some of the `known` ones."""
        prompt = self.prompt(style, rng, known)
        why = ""
        for _ in range(_TURNS):
            reply = self._client.ask(prompt)
            if reply.finish != "complete":
                return Unusable(style, f"the model's answer is {reply.finish}")
            try:
                source = _module(reply.text)
            except ReplyError as error:
                why = str(error)
                again = self._templates.render("again.j2", {"reason": why})
                prompt = prompt.after(reply.text, again)
            else:
                return SyntheticTask(_name(style, source), source, style)
        return Unusable(style, why.splitlines()[0])

    def prompt(self, style: Style, rng: random.Random, known: Sequence[SyntheticTask]) -> Prompt:
        """Return the prompt for the model."""
        shown = rng.sample(list(known), min(SHOWN[style], len(known)))
        variables: dict[str, Any] = {
            "examples": [task.source for task in shown],
            "change": rng.choice(CHANGES),
            "topics": rng.sample(TOPICS, _TOPICS_SHOWN),
            "most_elements": MAX_ELEMENTS,
        }

        def text(name: str) -> str:
            return self._templates.render(
                name, {variable: variables[variable] for variable in TEMPLATES[name]}
            )

        asked = text(f"{style.replace('-', '_')}.j2")
        messages = (Message("system", text("system.j2")), Message("user", asked))
        return Prompt(messages, f"synthesize.{style}")


def _module(text: str) -> str:
    """The module of a reply; `ReplyError` where it lacks what a problem needs."""
    source = extract_code(text, "Model")
    defined = {n.name for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)}
    if "get_inputs" not in defined:
        raise ReplyError(
            "The module does not define get_inputs(), which draws forward's arguments."
        )
    return source


def _name(style: Style, source: str) -> str:
    """Such as `mutation_gated_pooling_3f2a91`, after the first words of the docstring."""
    told = (ast.get_docstring(ast.parse(source)) or "").lower()
    words = re.findall(r"[a-z][a-z0-9]*", told.partition(".")[0])[:3]
    digest = hashlib.sha256(source.encode()).hexdigest()[:6]
    return "_".join([style.replace("-", "_"), *words, digest])
