"""Proposals from a language model: one conversation for each form of step."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from adaexplore.core.candidate import Candidate
from adaexplore.core.node import Node
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import Prompt, Reply
from adaexplore.core.protocols.proposer import Context, Dialogue, Outline, OutlineFlow
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Passed
from adaexplore.llm.code import ReplyError
from adaexplore.propose.model.answers import (
    ReadReply,
    SourceAnswer,
    keeping,
    one_line,
    patching,
    read_answer,
    whole_module,
)
from adaexplore.propose.model.kernels import judged_before, to_contrast, tried_before
from adaexplore.propose.model.outlines import read_outlines
from adaexplore.propose.model.plans import PlanItem, progress, read_plan
from adaexplore.propose.model.prompts import Briefing, Prompts, Turn
from adaexplore.propose.model.sections import SectionedPrompt
from adaexplore.propose.model.strategies import find_strategy

ORIGIN = "model"
_MAX_SUMMED = 60  # steps, one line each

T = TypeVar("T")
AnswerFlow = Generator[Prompt, Reply, SourceAnswer]
"""Yields prompts, is sent the replies and returns the answer."""


class _NoAnswerError(Exception):
    """The model gave no usable reply; the step fails."""


class _TooLongError(_NoAnswerError):
    """The prompt is longer than the model's context."""


class ModelProposer:
    """Proposer that asks a language model.

    `rules` returns memory's rules for a context, most useful first. `lint` returns the known faults
    of a source; the model is told of them once and may fix them before the evaluation. The settings
    choose the form of a step. A large step writes a new module, alone, by an outline, from a chosen
    strategy or from a contrast of kernels. A small step repairs a failed kernel, or revises and
    patches. With the policy `stepwise`, a large step makes a plan and its first version, and a
    small step carries out the next item. Before any of them, a call may sum up the search so far.
    Before several large steps at once, a call names a different structure, an outline, for each.
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
        tokens: Counter[str] = Counter()
        if context.outlines:
            outlines = yield from _counting(self.outline(context), tokens)
            context = context.given(outlines, 0)
        briefing = self._briefing(context)
        summary = yield from _counting(self._summary(context, briefing), tokens)
        form, flow = self._flow(context, replace(briefing, summary=summary))
        settings = {"form": form}
        if context.outline:
            settings["outline"] = context.outline.name
        try:
            answer = yield from _counting(self._without_faults(context, flow), tokens)
        except _NoAnswerError as error:
            return Proposal(
                candidate=Candidate("", context.problem.language),
                origin=ORIGIN,
                note=f"{form}: {error}",
                settings={**settings, "prompt_tokens": dict(tokens)},
                failure=str(error),
            )
        plan = {"plan": list(answer.plan)} if answer.plan else {}
        notes = filter(None, [settings.get("outline"), answer.note])
        return Proposal(
            candidate=Candidate(answer.source, context.problem.language),
            origin=ORIGIN,
            note=": ".join(filter(None, [form, "; ".join(notes)])),
            settings={**settings, "prompt_tokens": dict(tokens), **plan},
            prompt=_as_text(answer.prompt),
            reply=answer.reply.text,
        )

    def outline(self, context: Context) -> OutlineFlow:
        """See `NamesOutlines.outline`."""
        briefing, number = self._briefing(context), context.outlines

        def asking(skip: int) -> SectionedPrompt:
            return self._prompts.outlines(briefing, context.pool[skip:], number, skip)

        def read(_: Prompt, reply: Reply) -> tuple[Outline, ...]:
            return read_outlines(reply.text, number)

        try:
            return (yield from self._readable(asking, len(context.pool), read))
        except _NoAnswerError:
            return ()

    def close(self) -> None:
        """Do nothing: a client is closed by its creator."""

    def _briefing(self, context: Context) -> Briefing:
        others, feedback = self._settings.shows_tried, self._settings.feedback
        return Briefing(
            problem=context.problem,
            facts=context.facts,
            environment=context.environment,
            rules=tuple(self._rules(context)),
            demand=self._settings.demand,
            tried=tried_before(context, feedback) if others else (),
            in_flight=context.in_flight if others else 0,
            others=context.others if others else (),
            outline=context.outline,
            feedback=feedback,
        )

    def _flow(self, context: Context, briefing: Briefing) -> tuple[str, AnswerFlow]:
        """Return the form of this step and its flow."""
        settings, rng = self._settings, random.Random(context.seed)
        if context.step_kind == "small":
            window = [node for node in context.window if node.candidate.source]
            last = context.window[-1]
            if not last.candidate.source:  # that step gave no module: there is nothing to change
                return "large", self._large(briefing, [n for n in window if _is_right(n)])
            if settings.repair and not _is_right(last) and last.evaluation.status != "not_run":
                return "repair", self._repair(briefing, last)
            if settings.plan_items and (items := progress(context, settings.plan_tries)):
                return "item", self._item(briefing, window, items)
            contrast = self._to_contrast(context, rng)
            return "patch", self._patch(replace(briefing, contrast=contrast), window)
        contrast = self._to_contrast(context, rng)
        if settings.plan_items:
            return "plan", self._plan(replace(briefing, contrast=contrast), context.pool)
        if contrast:
            return "contrast", self._contrast(briefing, contrast)
        if context.outline:
            return "outline", self._large(briefing, context.pool)
        if rng.random() < settings.p_strategy:
            return "strategy", self._strategy(briefing, context.pool)
        return "large", self._large(briefing, context.pool)

    def _to_contrast(self, context: Context, rng: random.Random) -> list[Node]:
        """Return the kernels that this step compares first, fastest first; none for most steps."""
        settings = self._settings
        if settings.feedback != "full":
            return []
        if settings.contrast is not None:
            most = max(settings.pool_size, 2)
            return to_contrast(context, most, rng) if settings.contrast else []
        of_pool = to_contrast(replace(context, history=()), len(context.pool), rng)
        if context.step_kind == "large" and of_pool and rng.random() < settings.p_contrast:
            return of_pool
        return []

    def _summary(self, context: Context, briefing: Briefing) -> Generator[Prompt, Reply, str]:
        """Return a summary of the search so far; empty if the settings or the model give none."""
        nodes = judged_before(context) if self._settings.sums_up else []
        if not nodes:
            return ""
        older = max(len(nodes) - _MAX_SUMMED, 0)

        def asking(skip: int) -> SectionedPrompt:
            return self._prompts.summary(briefing, nodes[older + skip :], older + skip)

        try:
            _, reply = yield from self._fitting(asking, len(nodes) - older - 1)
        except _NoAnswerError:
            return ""
        return reply.text.strip()

    def _large(self, briefing: Briefing, pool: Sequence[Node]) -> AnswerFlow:
        def asking(skip: int) -> SectionedPrompt:
            return self._prompts.large(briefing, pool[skip:], skip)

        return (yield from self._asked_for(asking, len(pool), whole_module))

    def _strategy(self, briefing: Briefing, pool: Sequence[Node]) -> AnswerFlow:
        """Ask for a named strategy, then for a kernel that follows it."""
        before = yield from self._turn(
            lambda skip: self._prompts.strategy(briefing, pool[skip:]), len(pool)
        )
        strategy = find_strategy(before.reply)  # with another name the plan stands alone

        def asking(skip: int) -> SectionedPrompt:
            return self._prompts.large_with_strategy(briefing, pool[skip:], before, skip)

        answer = yield from self._asked_for(asking, len(pool), whole_module)
        return replace(answer, note=f"{strategy}; {answer.note}") if strategy else answer

    def _plan(self, briefing: Briefing, pool: Sequence[Node]) -> AnswerFlow:
        """Ask for a plan, then for its first version."""
        most = self._settings.plan_items
        before = yield from self._turn(
            lambda skip: self._prompts.plan(briefing, pool[skip:], most, skip), len(pool)
        )

        def asking(_: int) -> SectionedPrompt:
            return self._prompts.first_version(briefing, pool, before)

        answer = yield from self._asked_for(asking, 0, whole_module)
        items = read_plan(before.reply, most)
        return replace(answer, note=f"{len(items)} items; {answer.note}", plan=items)

    def _item(
        self, briefing: Briefing, window: Sequence[Node], items: Sequence[PlanItem]
    ) -> AnswerFlow:
        """Ask for patches that carry out the next item of a plan."""
        older = len(window) - 1

        def asking(skip: int) -> SectionedPrompt:
            return self._prompts.item(briefing, window[skip:], items, skip)

        answer = yield from self._asked_for(asking, older, patching(window[-1].candidate.source))
        [number] = [item.number for item in items if item.state == "now"]
        return replace(answer, note=f"{number} of {len(items)}; {answer.note}")

    def _contrast(self, briefing: Briefing, kernels: Sequence[Node]) -> AnswerFlow:
        def asking(skip: int) -> SectionedPrompt:
            kept = kernels[: len(kernels) - skip]
            return self._prompts.contrastive(replace(briefing, contrast=kept))

        return (yield from self._asked_for(asking, len(kernels) - 2, whole_module))

    def _patch(self, briefing: Briefing, window: Sequence[Node]) -> AnswerFlow:
        """Ask a reviser for the most important changes, then a tuner for patches."""
        before, older = None, len(window) - 1
        source = window[-1].candidate.source
        read = (keeping if self._settings.unpatched == "repeat" else patching)(source)
        if self._settings.reviser and any(map(_is_right, window)):
            before = yield from self._turn(
                lambda skip: self._prompts.reviser(briefing, window[skip:]), older
            )

        def asking(skip: int) -> SectionedPrompt:
            return self._prompts.tuner(briefing, window[skip:], before, skip)

        return (yield from self._asked_for(asking, older, read))

    def _repair(self, briefing: Briefing, failed: Node) -> AnswerFlow:
        def asking(_: int) -> SectionedPrompt:
            return self._prompts.repair(briefing, failed)

        return (yield from self._asked_for(asking, 0, patching(failed.candidate.source)))

    def _asked_for(
        self, asking: Callable[[int], SectionedPrompt], max_omitted: int, read: ReadReply
    ) -> AnswerFlow:
        """Return the source that `read` finds in a reply."""
        return (yield from self._readable(asking, max_omitted, partial(read_answer, read)))

    def _readable(
        self,
        asking: Callable[[int], SectionedPrompt],
        max_omitted: int,
        read: Callable[[Prompt, Reply], T],
    ) -> Generator[Prompt, Reply, T]:
        """Return the content that `read` finds in a reply.

        If the settings allow it, an unusable reply is asked for again, once, with the reason.
        """
        prompt, reply = yield from self._fitting(asking, max_omitted)
        try:
            return read(prompt, reply)
        except ReplyError as error:
            if not self._settings.ask_again:
                raise _NoAnswerError(one_line(str(error))) from None
            prompt = prompt.after(reply.text, self._prompts.again(str(error)), "again")
        reply = yield from self._whole(prompt)
        try:
            return read(prompt, reply)
        except ReplyError as error:
            raise _NoAnswerError(f"asked twice: {one_line(str(error))}") from None

    def _without_faults(self, context: Context, flow: AnswerFlow) -> AnswerFlow:
        """Return the answer with known faults fixed; unchanged if the model does not fix them."""
        answer = yield from flow
        faults = self._lint(context, answer.source) if self._settings.lint else ()
        if not faults:
            return answer
        prompt = answer.prompt.after(answer.reply.text, self._prompts.lint(faults), "lint")
        try:
            reply = yield from self._whole(prompt)
            fixed = read_answer(patching(answer.source), prompt, reply)
        except (_NoAnswerError, ReplyError):
            return answer
        note = f"{answer.note}; fixed known faults" if answer.note else fixed.note
        return replace(fixed, note=note, plan=answer.plan)

    def _turn(
        self, asking: Callable[[int], SectionedPrompt], max_omitted: int
    ) -> Generator[Prompt, Reply, Turn]:
        """Return a turn whose reply is no code."""
        prompt, reply = yield from self._fitting(asking, max_omitted)
        return Turn(prompt, reply.text.strip())

    def _fitting(
        self, asking: Callable[[int], SectionedPrompt], max_omitted: int
    ) -> Generator[Prompt, Reply, tuple[SectionedPrompt, Reply]]:
        """Return the first prompt that fits the model's context, and its reply.

        `asking(n)` returns the prompt without `n` kernels, `n` from 0 to `max_omitted`: the oldest,
        or the slowest of a contrast.
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


def _as_text(prompt: Prompt) -> str:
    return "\n\n".join(f"[{message.role}]\n{message.text}" for message in prompt.messages)
