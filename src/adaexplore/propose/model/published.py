"""Prompts with what the published search shows (arXiv 2604.16625), and nothing more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from adaexplore.core.node import Node
from adaexplore.core.text.units import duration_us, speedup
from adaexplore.core.verdict.evaluation import NOT_COMPILED, Evaluation, Failed, Passed, Timing
from adaexplore.propose.model.kernels import KernelView, kernel_view
from adaexplore.propose.model.prompts import Briefing, Prompts, Turn, large_task
from adaexplore.propose.model.sections import SectionedPrompt

_LOG_CHARS = 2000
_COMMON = ("system:published_system", "problem:published_problem", "rules:published_rules")
_ADDED = ("contrast", "tried", "summary", "others", "outline")
"""Sections that are empty unless settings ask for them."""


class PublishedPrompts(Prompts):
    """Prompts of the published search: the reference, the memory and kernels with measurements.

    Hardware, roofline, notes on the language and an example are left out; other steps, kernels to
    compare and a summary are there only where settings ask for them.
    """

    def large(self, briefing: Briefing, pool: Sequence[Node], left_out: int = 0) -> SectionedPrompt:
        """Ask for a new module, faster than the kernels of `pool`."""
        label, task = large_task(briefing, "published_task_large")
        parts = (*_COMMON, "pool:published_kernels", *_ADDED, f"task:{task}")
        right = all(isinstance(node.evaluation, Passed) for node in pool)
        title = "Kernels to beat" if right else "Earlier kernels"
        more = {"title": title, "kernels": _measured(briefing, pool), "left_out": left_out}
        return self._prompt(label, briefing, parts, more)

    def outlines(
        self, briefing: Briefing, pool: Sequence[Node], number: int, left_out: int = 0
    ) -> SectionedPrompt:
        """Ask for `number` different structures, each for a step that is asked for at once."""
        parts = (*_COMMON, "pool:published_kernels", "tried", "others", "task:task_outlines")
        kernels = _measured(briefing, pool)
        more = {"title": "Kernels so far", "kernels": kernels, "pool": kernels, "number": number}
        return self._prompt("outlines", briefing, parts, {**more, "left_out": left_out})

    def contrastive(self, briefing: Briefing) -> SectionedPrompt:
        """Ask what makes the faster of the contrasted kernels faster, and for a better kernel."""
        parts = (*_COMMON, *_ADDED, "task:task_contrast")
        return self._prompt("large.contrast", briefing, parts, {})

    def reviser(self, briefing: Briefing, window: Sequence[Node]) -> SectionedPrompt:
        """Ask for the one to three most important changes to the last kernel of `window`."""
        parts = (*_COMMON, "current:published_kernels", *_ADDED, "task:published_task_reviser")
        kernels = _measured(briefing, window[-1:])
        more = {"title": "The kernel to change", "kernels": kernels, "left_out": 0}
        return self._prompt("small.reviser", briefing, parts, more)

    def tuner(
        self,
        briefing: Briefing,
        window: Sequence[Node],
        before: Turn | None = None,
        left_out: int = 0,
    ) -> SectionedPrompt:
        """Ask for patches to the last kernel of `window`, in a conversation of its own."""
        guidance = before.reply if before else ""
        added = () if guidance else _ADDED  # the reviser has seen them
        known = ("window:published_kernels", "guidance", *added)
        parts = (*_COMMON, *known, "task:published_task_tuner")
        more = {
            "title": "Kernels, each made from the one before",
            "kernels": _measured(briefing, window),
            "guidance": guidance,
            "left_out": left_out,
        }
        return self._prompt("small.tuner", briefing, parts, more)

    def _contrasted(self, briefing: Briefing) -> list[KernelView]:
        return [replace(kernel, note="") for kernel in _measured(briefing, briefing.contrast)]


def measurements(evaluation: Evaluation) -> str:
    """Return what the published search says of a kernel: compiled, correct, time, speedup.

    A failure has its error.
    """
    if isinstance(evaluation, Failed):
        compiled = evaluation.loaded or evaluation.status not in NOT_COMPILED
        log = "" if evaluation.status == "wrong_output" else evaluation.detail[-_LOG_CHARS:]
        head = "compiled, not correct" if compiled else "not compiled"
        return "\n".join(filter(None, [f"{head}: {evaluation.reason}", log.strip()]))
    timing = evaluation.timing
    if not isinstance(timing, Timing):
        return f"compiled, correct, {duration_us(timing.time_us)} by estimate"
    return (
        f"compiled, correct, {duration_us(timing.time_us)}, "
        f"{speedup(timing.speedup_eager)} over eager"
    )


def _measured(briefing: Briefing, nodes: Sequence[Node]) -> list[KernelView]:
    if briefing.feedback == "verdict":
        return [kernel_view(node, "verdict") for node in nodes]
    return [replace(kernel_view(node), result=measurements(node.evaluation)) for node in nodes]
