"""Proposals from a language model: one conversation for each form of step."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from adaexplore.core.candidate import Candidate
from adaexplore.core.config import Config
from adaexplore.core.evaluation import Passed, rank
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import Prompt, Reply
from adaexplore.core.protocols.proposer import Context, Dialogue
from adaexplore.llm.code import ReplyError, check_module, extract_code
from adaexplore.propose.model.kernels import judged_before, tried_before
from adaexplore.propose.model.patches import Patched, apply_patches, parse_patches
from adaexplore.propose.model.prompts import Briefing, Prompts
from adaexplore.propose.model.sections import SectionedPrompt
from adaexplore.propose.model.strategies import find_strategy

ORIGIN = "model"
_NOTE_CHARS = 300
_MAX_SUMMED = 60  # steps, one line each
_FENCED = re.compile(r"^\s*(```|~~~|<{5,}|={5,}|>{5,})")

T = TypeVar("T")
AnswerFlow = Generator[Prompt, Reply, "_Answer"]
"""Yields prompts, is sent the replies and returns the answer."""
ReadReply = Callable[[str], Patched]
"""Read a source from a reply's text, or raise `ReplyError`."""


class _NoAnswerError(Exception):
    """The model gave no usable reply; the step fails."""


class _TooLongError(_NoAnswerError):
    """The prompt is longer than the model's context."""


class _Answer:
    """A source, the conversation's last prompt and reply, and a note in one line."""

    def __init__(self, source: str, prompt: Prompt, reply: Reply, note: str) -> None:
        self.source = source
        self.prompt = prompt
        self.reply = reply
        self.note = note


class ModelProposer:
    """Proposer that asks a language model.

    `rules` returns memory's rules for a context, most useful first. `lint` returns the known faults
    of a source; the model is told of them once and may fix them before the evaluation. The settings
    choose the form of a step. A large step writes a new module, alone, from a chosen strategy or
    from a contrast of two kernels. A small step repairs a failed kernel, or revises and patches.
    Before either, a call may sum up the search so far.
    """

    def __init__(
        self,
        prompts: Prompts,
        settings: Config,
        rules: Callable[[Context], Sequence[str]] = lambda _: (),
        lint: Callable[[Context, str], Sequence[str]] = lambda _context, _source: (),
    ) -> None:
        self._prompts = prompts
        self._settings = settings
        self._rules = rules
        self._lint = lint

    def begin(self, context: Context) -> Dialogue:
        """See `Proposer.begin`."""
        others = self._settings.shows_tried
        briefing = Briefing(
            problem=context.problem,
            facts=context.facts,
            environment=context.environment,
            rules=tuple(self._rules(context)),
            demand=self._settings.demand,
            tried=tried_before(context) if others else (),
            in_flight=context.in_flight if others else 0,
        )
        tokens: Counter[str] = Counter()
        summary = yield from _counting(self._summary(context, briefing), tokens)
        form, flow = self._flow(context, replace(briefing, summary=summary))
        try:
            answer = yield from _counting(self._without_faults(context, flow), tokens)
        except _NoAnswerError as error:
            return _failed(context.problem, form, str(error), tokens)
        return Proposal(
            candidate=Candidate(answer.source, context.problem.language),
            origin=ORIGIN,
            note=f"{form}: {answer.note}" if answer.note else form,
            settings=_settings(form, tokens),
            prompt=_as_text(answer.prompt),
            reply=answer.reply.text,
        )

    def close(self) -> None:
        """Do nothing: a client is closed by its creator."""

    def _flow(self, context: Context, briefing: Briefing) -> tuple[str, AnswerFlow]:
        """Return the form of this step and its flow."""
        settings, rng = self._settings, random.Random(context.seed)
        if context.step_kind == "small":
            window = [node for node in context.window if node.candidate.source]
            last = context.window[-1]
            if not last.candidate.source:  # that step gave no module: there is nothing to change
                return "large", self._large(briefing, [n for n in window if _is_right(n)])
            if settings.repair and not _is_right(last):
                return "repair", self._repair(briefing, last)
            return "patch", self._patch(briefing, window)
        right = [node for node in context.pool if _is_right(node)]
        if len(right) >= 2 and rng.random() < settings.p_contrast:
            return "contrast", self._contrast(briefing, right)
        if rng.random() < settings.p_strategy:
            return "strategy", self._strategy(briefing, context.pool)
        return "large", self._large(briefing, context.pool)

    def _summary(self, context: Context, briefing: Briefing) -> Generator[Prompt, Reply, str]:
        """Return a summary of the search so far; empty if the settings or the model give none."""
        nodes = judged_before(context) if self._settings.sums_up else []
        if not nodes:
            return ""
        older = max(len(nodes) - _MAX_SUMMED, 0)

        def asking(skip: int) -> Prompt:
            return self._prompts.summary(briefing, nodes[older + skip :], older + skip)

        try:
            _, reply = yield from self._fitting(asking, len(nodes) - older - 1)
        except _NoAnswerError:
            return ""
        return reply.text.strip()

    def _large(self, briefing: Briefing, pool: Sequence[Node]) -> AnswerFlow:
        def asking(skip: int) -> Prompt:
            return self._prompts.large(briefing, pool[skip:], skip)

        return (yield from self._asked_for(asking, len(pool), _module))

    def _strategy(self, briefing: Briefing, pool: Sequence[Node]) -> AnswerFlow:
        """Ask for a named strategy, then for a kernel that follows it."""
        _, reply = yield from self._fitting(
            lambda skip: self._prompts.strategy(briefing, pool[skip:]), len(pool)
        )
        strategy = find_strategy(reply.text) or ""  # with another name the plan stands alone
        plan = reply.text.strip()

        def asking(skip: int) -> Prompt:
            return self._prompts.large_with_strategy(briefing, pool[skip:], strategy, plan, skip)

        answer = yield from self._asked_for(asking, len(pool), _module)
        answer.note = f"{strategy}; {answer.note}" if strategy else answer.note
        return answer

    def _contrast(self, briefing: Briefing, pool: Sequence[Node]) -> AnswerFlow:
        ordered = sorted(pool, key=lambda node: rank(node.evaluation))

        def asking(_: int) -> Prompt:
            return self._prompts.contrastive(briefing, ordered[-1], ordered[0])

        return (yield from self._asked_for(asking, 0, _module))

    def _patch(self, briefing: Briefing, window: Sequence[Node]) -> AnswerFlow:
        """Ask a reviser for the most important changes, then a tuner for patches."""
        guidance, older = "", len(window) - 1
        source = window[-1].candidate.source
        read = (_keeping if self._settings.unpatched == "repeat" else _patching)(source)
        if self._settings.reviser and any(map(_is_right, window)):
            _, reply = yield from self._fitting(
                lambda skip: self._prompts.reviser(briefing, window[skip:]), older
            )
            guidance = reply.text.strip()

        def asking(skip: int) -> Prompt:
            return self._prompts.tuner(briefing, window[skip:], guidance, skip)

        return (yield from self._asked_for(asking, older, read))

    def _repair(self, briefing: Briefing, failed: Node) -> AnswerFlow:
        def asking(_: int) -> Prompt:
            return self._prompts.repair(briefing, failed)

        return (yield from self._asked_for(asking, 0, _patching(failed.candidate.source)))

    def _asked_for(
        self, asking: Callable[[int], Prompt], max_omitted: int, read: ReadReply
    ) -> AnswerFlow:
        """Return the source that `read` finds in a reply.

        If the settings allow it, an unusable reply is asked for again, once, with the reason.
        """
        prompt, reply = yield from self._fitting(asking, max_omitted)
        try:
            return _answer(read, prompt, reply)
        except ReplyError as error:
            if not self._settings.ask_again:
                raise _NoAnswerError(_one_line(str(error))) from None
            prompt = prompt.after(reply.text, self._prompts.again(str(error)), "again")
        reply = yield from self._whole(prompt)
        try:
            return _answer(read, prompt, reply)
        except ReplyError as error:
            raise _NoAnswerError(f"asked twice: {_one_line(str(error))}") from None

    def _without_faults(self, context: Context, flow: AnswerFlow) -> AnswerFlow:
        """Return the answer with known faults fixed; unchanged if the model does not fix them."""
        answer = yield from flow
        faults = self._lint(context, answer.source) if self._settings.lint else ()
        if not faults:
            return answer
        prompt = answer.prompt.after(answer.reply.text, self._prompts.lint(faults), "lint")
        try:
            reply = yield from self._whole(prompt)
            fixed = _answer(_patching(answer.source), prompt, reply)
        except (_NoAnswerError, ReplyError):
            return answer
        fixed.note = f"{answer.note}; fixed known faults" if answer.note else fixed.note
        return fixed

    def _fitting(
        self, asking: Callable[[int], Prompt], max_omitted: int
    ) -> Generator[Prompt, Reply, tuple[Prompt, Reply]]:
        """Return the first prompt that fits the model's context, and its reply.

        `asking(n)` returns the prompt without the `n` oldest kernels, `n` from 0 to `max_omitted`.
        """
        for skip in range(max_omitted + 1):
            prompt = asking(skip)
            try:
                return prompt, (yield from self._whole(prompt))
            except _TooLongError:
                continue
        raise _NoAnswerError(
            "the prompt is longer than the model's context, even without older kernels"
        )

    def _whole(self, prompt: Prompt) -> Generator[Prompt, Reply, Reply]:
        """Return a complete reply; one that was cut off is continued once, if settings allow it."""
        reply = yield prompt
        if reply.finish == "truncated" and reply.text.strip() and self._settings.ask_again:
            more = yield prompt.after(reply.text, self._prompts.cut_off(), "continue")
            if more.finish == "complete":
                return Reply(reply.text + more.text, more.model)
            reply = more
        match reply.finish:
            case "complete" if reply.text.strip():
                return reply
            case "too_long":
                raise _TooLongError("the prompt is longer than the model's context")
            case "refused":
                raise _NoAnswerError("the model refused to answer")
            case "truncated":
                raise _NoAnswerError("the model's reply was cut off at its length limit")
            case _:
                raise _NoAnswerError("the model's reply is empty")


def _is_right(node: Node) -> bool:
    return isinstance(node.evaluation, Passed)


def _answer(read: ReadReply, prompt: Prompt, reply: Reply) -> _Answer:
    """Return the answer in a reply; raise `ReplyError` if there is none."""
    made = read(reply.text)
    return _Answer(made.source, prompt, reply, "; ".join([_note(reply.text), *made.notes]))


def _module(text: str) -> Patched:
    """Return the whole module in a reply."""
    return Patched(extract_code(text), ())


def _patching(source: str) -> ReadReply:
    """Return a reader of replies with patches to `source`, or with a whole new module."""

    def read(text: str) -> Patched:
        try:
            patched = apply_patches(source, parse_patches(text))
        except ReplyError as error:
            try:
                whole = _module(text)
            except ReplyError:
                raise error from None
            if whole.source == source:
                raise
            return whole
        check_module(patched.source)
        return patched

    return read


def _keeping(source: str) -> ReadReply:
    """Return a reader of replies with patches; the source is kept where they do not apply."""

    def read(text: str) -> Patched:
        try:
            return apply_patches(source, parse_patches(text))
        except ReplyError as error:
            return Patched(source, (f"unchanged: {_one_line(str(error))}",))

    return read


def _counting(
    flow: Generator[Prompt, Reply, T], tokens: Counter[str]
) -> Generator[Prompt, Reply, T]:
    """Run the flow and add up the token costs of their prompts' sections."""
    try:
        prompt = next(flow)
        while True:
            if isinstance(prompt, SectionedPrompt):
                tokens.update(prompt.costs)
            prompt = flow.send((yield prompt))
    except StopIteration as end:
        value: T = end.value
        return value


def _failed(problem: Problem, form: str, reason: str, tokens: Counter[str]) -> Proposal:
    empty = Candidate("", problem.language)
    note = f"{form}: {reason}"
    return Proposal(empty, ORIGIN, note, _settings(form, tokens), failure=reason)


def _settings(form: str, tokens: Counter[str]) -> dict[str, Any]:
    """Return the form of the step and the estimated tokens of its prompts by section."""
    return {"form": form, "prompt_tokens": dict(tokens)}


def _as_text(prompt: Prompt) -> str:
    return "\n\n".join(f"[{message.role}]\n{message.text}" for message in prompt.messages)


def _note(text: str) -> str:
    """Return the first line of prose in a reply."""
    fenced = False
    for line in text.splitlines():
        if _FENCED.match(line):
            fenced = not fenced
        elif not fenced and line.strip():
            return _one_line(line)
    return ""


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _NOTE_CHARS else f"{line[: _NOTE_CHARS - 1]}…"
