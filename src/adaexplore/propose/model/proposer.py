"""Proposals from a language model: one dialogue for each form of step."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import Any

from adaexplore.core.candidate import Candidate
from adaexplore.core.client import Prompt, Reply
from adaexplore.core.config import Settings
from adaexplore.core.evaluation import Passed, rank
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.proposer import Context, Dialogue
from adaexplore.llm.code import ReplyError, check_module, extract_code
from adaexplore.propose.model.kernels import tried_beside
from adaexplore.propose.model.patches import Patched, apply_patches, parse_patches
from adaexplore.propose.model.prompts import Prompts, Setting
from adaexplore.propose.model.sections import SectionedPrompt
from adaexplore.propose.model.strategies import find_strategy

ORIGIN = "model"
_NOTE_CHARS = 300
_FENCED = re.compile(r"^\s*(```|~~~|<{5,}|={5,}|>{5,})")

Talk = Generator[Prompt, Reply, "_Answer"]
WorkOn = Callable[[str], Patched]
"""Makes a source of a reply's text, or raises `ReplyError`."""


class _NoAnswerError(Exception):
    """The model gave nothing to work with; the step comes to nothing."""


class _TooLongError(_NoAnswerError):
    """The model has no room for the prompt."""


class _Answer:
    """A source, the conversation's last prompt and reply, and a line on what was done."""

    def __init__(self, source: str, prompt: Prompt, reply: Reply, note: str) -> None:
        self.source = source
        self.prompt = prompt
        self.reply = reply
        self.note = note


class ModelProposer:
    """Asks a language model, whichever answers.

    `rules` are what memory has on a context, most useful first, and `lint` what is known to fail in
    a source: the model is told of it, once, and may mend it before it is evaluated. Which forms of
    steps there are is in the settings: a large step regenerates, chooses a strategy first or
    contrasts two kernels; a small one mends what failed, or revises and patches.
    """

    def __init__(
        self,
        prompts: Prompts,
        settings: Settings,
        rules: Callable[[Context], Sequence[str]] = lambda _: (),
        lint: Callable[[Context, str], Sequence[str]] = lambda _context, _source: (),
    ) -> None:
        self._prompts = prompts
        self._settings = settings
        self._rules = rules
        self._lint = lint

    def begin(self, context: Context) -> Dialogue:
        """See `Proposer.begin`."""
        setting = Setting(
            problem=context.problem,
            facts=context.facts,
            environment=context.environment,
            rules=tuple(self._rules(context)),
            demand=self._settings.demand,
            tried=tried_beside(context),
            in_flight=context.in_flight,
        )
        form, talk = self._talk(context, setting)
        tokens: Counter[str] = Counter()
        try:
            answer = yield from _counting(self._mended(context, talk), tokens)
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
        """Nothing to end: clients belong to whoever opened them."""

    def _talk(self, context: Context, setting: Setting) -> tuple[str, Talk]:
        """The form of this step and its conversation."""
        settings, rng = self._settings, random.Random(context.seed)
        if context.step_kind == "small":
            window = [node for node in context.window if node.candidate.source]
            last = context.window[-1]
            if not last.candidate.source:  # nothing came of that step: there is nothing to change
                return "large", self._large(setting, [n for n in window if _is_right(n)])
            if settings.repair and not _is_right(last):
                return "repair", self._repair(setting, last)
            return "patch", self._patch(setting, window)
        if len(context.pool) >= 2 and rng.random() < settings.p_contrast:
            return "contrast", self._contrast(setting, context.pool)
        if rng.random() < settings.p_strategy:
            return "strategy", self._strategy(setting, context.pool)
        return "large", self._large(setting, context.pool)

    def _large(self, setting: Setting, pool: Sequence[Node]) -> Talk:
        def asking(skip: int) -> Prompt:
            return self._prompts.large(setting, pool[skip:], skip)

        return (yield from self._worked_on(asking, len(pool), _module))

    def _strategy(self, setting: Setting, pool: Sequence[Node]) -> Talk:
        """First a named strategy, then the kernel that follows it."""
        _, reply = yield from self._fitting(
            lambda skip: self._prompts.strategy(setting, pool[skip:]), len(pool)
        )
        strategy = find_strategy(reply.text) or ""  # any other name leaves the plan by itself
        plan = reply.text.strip()

        def asking(skip: int) -> Prompt:
            return self._prompts.large_with_strategy(setting, pool[skip:], strategy, plan, skip)

        answer = yield from self._worked_on(asking, len(pool), _module)
        answer.note = f"{strategy}; {answer.note}" if strategy else answer.note
        return answer

    def _contrast(self, setting: Setting, pool: Sequence[Node]) -> Talk:
        ordered = sorted(pool, key=lambda node: rank(node.evaluation))

        def asking(_: int) -> Prompt:
            return self._prompts.contrastive(setting, ordered[-1], ordered[0])

        return (yield from self._worked_on(asking, 0, _module))

    def _patch(self, setting: Setting, window: Sequence[Node]) -> Talk:
        """A reviser says what matters most, a tuner answers with patches."""
        guidance, older = "", len(window) - 1
        if self._settings.reviser and any(map(_is_right, window)):
            _, reply = yield from self._fitting(
                lambda skip: self._prompts.reviser(setting, window[skip:]), older
            )
            guidance = reply.text.strip()

        def asking(skip: int) -> Prompt:
            return self._prompts.tuner(setting, window[skip:], guidance, skip)

        return (yield from self._worked_on(asking, older, _patching(window[-1].candidate.source)))

    def _repair(self, setting: Setting, failed: Node) -> Talk:
        def asking(_: int) -> Prompt:
            return self._prompts.repair(setting, failed)

        return (yield from self._worked_on(asking, 0, _patching(failed.candidate.source)))

    def _worked_on(self, asking: Callable[[int], Prompt], most: int, work_on: WorkOn) -> Talk:
        """The source that `work_on` makes of a reply.

        One that it cannot use is asked for again, once, with the reason, if the settings say so.
        """
        prompt, reply = yield from self._fitting(asking, most)
        try:
            return _answer(work_on, prompt, reply)
        except ReplyError as error:
            if not self._settings.ask_again:
                raise _NoAnswerError(_one_line(str(error))) from None
            prompt = prompt.after(reply.text, self._prompts.again(str(error)), "again")
        reply = yield from self._whole(prompt)
        try:
            return _answer(work_on, prompt, reply)
        except ReplyError as error:
            raise _NoAnswerError(f"asked twice: {_one_line(str(error))}") from None

    def _mended(self, context: Context, talk: Talk) -> Talk:
        """The answer without what is known to fail; as it is where the model does not mend it."""
        answer = yield from talk
        faults = self._lint(context, answer.source) if self._settings.lint else ()
        if not faults:
            return answer
        prompt = answer.prompt.after(answer.reply.text, self._prompts.lint(faults), "lint")
        try:
            reply = yield from self._whole(prompt)
            mended = _answer(_patching(answer.source), prompt, reply)
        except (_NoAnswerError, ReplyError):
            return answer
        mended.note = f"{answer.note}; mended what rules forbid" if answer.note else mended.note
        return mended

    def _fitting(
        self, asking: Callable[[int], Prompt], most: int
    ) -> Generator[Prompt, Reply, tuple[Prompt, Reply]]:
        """The first prompt that the model has room for, and its reply.

        `asking` makes one that leaves out so many, from 0 to `most`, of the oldest kernels.
        """
        for skip in range(most + 1):
            prompt = asking(skip)
            try:
                return prompt, (yield from self._whole(prompt))
            except _TooLongError:
                continue
        raise _NoAnswerError(
            "the prompt is longer than the model takes, even without older kernels"
        )

    def _whole(self, prompt: Prompt) -> Generator[Prompt, Reply, Reply]:
        """A reply in full: one that was cut off is continued, once."""
        reply = yield prompt
        if reply.finish == "truncated" and reply.text.strip():
            more = yield prompt.after(reply.text, self._prompts.cut_off(), "continue")
            if more.finish == "complete":
                return Reply(reply.text + more.text, more.model)
            reply = more
        match reply.finish:
            case "complete" if reply.text.strip():
                return reply
            case "too_long":
                raise _TooLongError("the prompt is longer than the model takes")
            case "refused":
                raise _NoAnswerError("the model refused to answer")
            case "truncated":
                raise _NoAnswerError("the model's reply was cut off at its limit, twice")
            case _:
                raise _NoAnswerError("the model's reply is empty")


def _is_right(node: Node) -> bool:
    return isinstance(node.evaluation, Passed)


def _answer(work_on: WorkOn, prompt: Prompt, reply: Reply) -> _Answer:
    """What a reply gives; raises `ReplyError`."""
    made = work_on(reply.text)
    return _Answer(made.source, prompt, reply, "; ".join([_note(reply.text), *made.notes]))


def _module(text: str) -> Patched:
    """The whole module in a reply."""
    return Patched(extract_code(text), ())


def _patching(source: str) -> WorkOn:
    """What makes a source of a reply with patches to `source`; a whole new module will do too."""

    def work_on(text: str) -> Patched:
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

    return work_on


def _counting(talk: Talk, tokens: Counter[str]) -> Talk:
    """The talk, adding up what the sections of its prompts cost."""
    try:
        prompt = next(talk)
        while True:
            if isinstance(prompt, SectionedPrompt):
                tokens.update(prompt.costs)
            prompt = talk.send((yield prompt))
    except StopIteration as end:
        answer: _Answer = end.value
        return answer


def _failed(problem: Problem, form: str, reason: str, tokens: Counter[str]) -> Proposal:
    empty = Candidate("", problem.language)
    note = f"{form}: {reason}"
    return Proposal(empty, ORIGIN, note, _settings(form, tokens), failure=reason)


def _settings(form: str, tokens: Counter[str]) -> dict[str, Any]:
    """The form of the step, and about how many tokens each section of its prompts cost."""
    return {"form": form, "prompt_tokens": dict(tokens)}


def _as_text(prompt: Prompt) -> str:
    return "\n\n".join(f"[{message.role}]\n{message.text}" for message in prompt.messages)


def _note(text: str) -> str:
    """The first line of prose in a reply."""
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
