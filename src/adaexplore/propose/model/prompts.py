"""Prompts to a language model, for every form of step."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import Node
from adaexplore.core.problem import LANGUAGES, Language, Problem
from adaexplore.core.protocols.proposer import Outline
from adaexplore.core.settings.config import Feedback
from adaexplore.core.text.units import relative_error
from adaexplore.core.verdict.evaluation import Failed, Fault, Passed
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.languages import DIALECTS, notes_of
from adaexplore.llm.templating import Templates, read_templates
from adaexplore.propose.model.hardware import hardware_of
from adaexplore.propose.model.kernels import KernelView, kernel_view, path_views, window_views
from adaexplore.propose.model.kinds import kind_of
from adaexplore.propose.model.patches import FORMAT
from adaexplore.propose.model.plans import PlanItem
from adaexplore.propose.model.sections import Section, SectionedPrompt, assembled
from adaexplore.propose.model.slowest import slowest_kernel
from adaexplore.propose.model.strategies import CATALOGUE, Strategy, strategies_for
from adaexplore.propose.model.variables import (
    ALONE,
    EXAMPLES,
    SHARED,
    TEMPLATES,
    example_name,
    notes_name,
)

OWN = files("adaexplore.propose.model") / "templates"
"""Folder of the package's own templates."""

_LOG_CHARS = 2000
_MUCH_WIDER = 10.0
_COMMON = ("system", "problem", "hardware")
"""Sections that are equal for all steps of a run. They come first: providers can cache them."""


@dataclass(frozen=True, slots=True)
class Briefing:
    """The facts that all prompts of a step share.

    `facts` is the run's record of the reference, `environment` its record of the machine. `rules`
    come from memory, most useful first. `demand` is a further demand of the user on every kernel.
    `tried` are steps like this one, best first. `contrast` are kernels to compare, fastest first.
    `summary` is a model's, of the search so far. `in_flight` counts the other steps in flight,
    `others` says what some of them write, as far as it is known. `outline` is the structure that
    this step is to write, if it is given one. `feedback` says what is told of evaluations.
    """

    problem: Problem
    facts: ReferenceFacts
    environment: Environment
    rules: Sequence[str] = ()
    demand: str = ""
    tried: Sequence[Node] = ()
    contrast: Sequence[Node] = ()
    summary: str = ""
    in_flight: int = 0
    others: Sequence[str] = ()
    outline: Outline | None = None
    feedback: Feedback = "full"


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a conversation: all of its prompt, and the model's reply."""

    prompt: SectionedPrompt
    reply: str


class Prompts:
    """Renders prompts from templates. `others` (`read_prompts`) may replace any template.

    Raises `BadInputError`, with file and line, for an unusable template, and for a problem in a
    language without notes. Every prompt carries the token costs of its sections.
    """

    def __init__(self, others: Mapping[str, str] = MappingProxyType({})) -> None:
        known = {
            name: own.keys() if name in ALONE else {*SHARED, *own}
            for name, own in TEMPLATES.items()
        }
        elsewhere = {notes_name(language): notes_of(language) for language in LANGUAGES}
        elsewhere |= EXAMPLES
        self._templates = Templates(OWN, others, known, elsewhere)

    @property
    def digest(self) -> str:
        """Content hash of the sources of prompts: templates, examples, strategies."""
        advice = [(dialect.strategies, dialect.since) for dialect in DIALECTS.values()]
        parts = repr((self._templates.digest, CATALOGUE, advice))
        return hashlib.sha256(parts.encode()).hexdigest()

    def large(self, briefing: Briefing, pool: Sequence[Node], left_out: int = 0) -> SectionedPrompt:
        """Ask for a new module, faster than the kernels of `pool`, by an outline if there is one.

        `left_out` kernels were omitted to fit the model's context; the prompt says so.
        """
        known = ("pool", "tried", "summary", "others", "outline")
        label, task = large_task(briefing, "task_large")
        parts = (*_COMMON, *self._for_code(pool), *known, f"task:{task}")
        return self._prompt(label, briefing, parts, self._with_pool(briefing, pool, left_out))

    def outlines(
        self, briefing: Briefing, pool: Sequence[Node], number: int, left_out: int = 0
    ) -> SectionedPrompt:
        """Ask for `number` different structures, each for a step that is asked for at once."""
        parts = (*_COMMON, "kernels:verdicts", "tried", "others", "task:task_outlines")
        more = {"pool": _views(briefing, pool), "number": number, "left_out": left_out}
        return self._prompt("outlines", briefing, parts, more)

    def strategy(self, briefing: Briefing, pool: Sequence[Node]) -> SectionedPrompt:
        """Ask for the name of a strategy and two sentences on how to follow it."""
        known = ("kernels:verdicts", "tried", "summary", "others")
        parts = (*_COMMON, *known, "strategies", "task:task_strategy")
        more = {"pool": _views(briefing, pool), "strategies": _strategies(briefing)}
        return self._prompt("strategy", briefing, parts, more)

    def large_with_strategy(
        self, briefing: Briefing, pool: Sequence[Node], before: Turn, left_out: int = 0
    ) -> SectionedPrompt:
        """Ask for a new module that follows the strategy of the turn before."""
        parts = (*self._for_code(pool), "pool", "task:task_plan")
        more = self._with_pool(briefing, pool, left_out)
        return self._next("large.strategy", before, briefing, parts, more)

    def plan(
        self, briefing: Briefing, pool: Sequence[Node], items: int, left_out: int = 0
    ) -> SectionedPrompt:
        """Ask for a plan: a first version, and at most `items` changes to it, one at a time.

        Kernels to compare stand in the place of the pool.
        """
        known = ("tried", "summary", "others", "strategies", "outline")
        parts = (*_COMMON, "contrast" if briefing.contrast else "pool", *known, "task:task_items")
        more = {"most": items, "strategies": _strategies(briefing)}
        more |= self._with_pool(briefing, pool, left_out)
        return self._prompt("plan", briefing, parts, more)

    def first_version(
        self, briefing: Briefing, pool: Sequence[Node], before: Turn
    ) -> SectionedPrompt:
        """Ask for the first version of the plan of the turn before, without its changes."""
        parts = (*self._for_code(pool), "task:task_first")
        return self._next("large.plan", before, briefing, parts, {"pool": _views(briefing, pool)})

    def item(
        self,
        briefing: Briefing,
        window: Sequence[Node],
        items: Sequence[PlanItem],
        left_out: int = 0,
    ) -> SectionedPrompt:
        """Ask for patches to the last kernel of `window` that carry out the next item of a plan.

        Failed attempts at items are shown with the reason, the last one at this item whole.
        """
        parts = (*_COMMON, "rules", "language", "window", "items", "attempt", "summary")
        [item] = [item for item in items if item.state == "now"]
        last = path_views([window[-1], *item.attempts[-1:]], briefing.feedback)[1:]
        views = [_item_view(briefing, each) for each in items]
        more = {
            "window": path_views(window, briefing.feedback),
            "slowest": _slowest(briefing, window[-1]),
            "left_out": left_out,
            "items": views,
            "item": views[item.number - 1],
            "attempt": last[0] if last else None,
        }
        return self._prompt("small.item", briefing, (*parts, "task:task_item"), more)

    def contrastive(self, briefing: Briefing) -> SectionedPrompt:
        """Ask what makes the faster of the contrasted kernels faster, and for a better kernel."""
        known = ("contrast", "summary", "others", "outline")
        parts = (*_COMMON, "rules", "language", *known, "task:task_contrast")
        return self._prompt("large.contrast", briefing, parts, {})

    def reviser(self, briefing: Briefing, window: Sequence[Node]) -> SectionedPrompt:
        """Ask for the one to three most important changes to the last kernel of `window`.

        Kernels to compare with are shown, and the comparison is asked for first.
        """
        known = ("earlier", "current", "contrast", "tried", "summary")
        parts = (*_COMMON, "language", *known, "task:task_reviser")
        more = {
            "window": window_views(window, briefing.feedback),
            "slowest": _slowest(briefing, window[-1]),
        }
        return self._prompt("small.reviser", briefing, parts, more)

    def tuner(
        self,
        briefing: Briefing,
        window: Sequence[Node],
        before: Turn | None = None,
        left_out: int = 0,
    ) -> SectionedPrompt:
        """Ask for patches to the last kernel of `window`.

        With a turn `before`, the reviser's, they make the changes that it names. `left_out` older
        kernels were omitted to fit the model's context: a new conversation says so.
        """
        views = path_views(window, briefing.feedback)
        guidance = before.reply if before else ""
        slowest = _slowest(briefing, window[-1])
        more = {"window": views, "slowest": slowest, "guidance": guidance, "left_out": left_out}
        if before and not left_out:
            return self._next("small.tuner", before, briefing, ("rules", "task:task_tuner"), more)
        known = ("guidance",) if guidance else ("tried", "summary")  # the reviser has seen them
        parts = (*_COMMON, "rules", "language", "window", *known, "task:task_tuner")
        return self._prompt("small.tuner", briefing, parts, more)

    def repair(self, briefing: Briefing, node: Node) -> SectionedPrompt:
        """Ask for the smallest change that makes a failed kernel correct."""
        parts = ("system", "problem", "rules", "language", "failed", "summary", "task:task_repair")
        log = _telling_log(node) if briefing.feedback == "full" else ""
        more = {"kernel": kernel_view(node, briefing.feedback), "log": log}
        return self._prompt("repair", briefing, parts, more)

    def summary(
        self, briefing: Briefing, history: Sequence[Node], left_out: int = 0
    ) -> SectionedPrompt:
        """Ask for a summary of the search so far, for the prompt of the next step.

        `left_out` older steps were omitted; the prompt says so.
        """
        parts = (*_COMMON, "history", "task:task_summary")
        more = {"history": _views(briefing, history), "left_out": left_out}
        return self._prompt("summary", briefing, parts, more)

    def again(self, reason: str) -> str:
        """Tell the model why its reply cannot be used, and ask for another in the same form."""
        return self._templates.render("again.j2", {"reason": reason.strip()})

    def cut_off(self) -> str:
        """Ask the model to continue a reply that was cut off at its length limit."""
        return self._templates.render("cut_off.j2", {})

    def lint(self, faults: Sequence[str]) -> str:
        """Tell the model which known faults its module has, and ask for a fix."""
        variables = {"faults": faults, "patch_format": FORMAT}
        return self._templates.render("lint.j2", variables)

    def example(self, language: Language, environment: Environment, kind: str = "") -> str:
        """Return the example of a language for a kind of problem, for the versions at hand."""
        versions = {"versions": _versions(environment)}
        return self._templates.render(example_name(language, kind), versions)

    def _contrasted(self, briefing: Briefing) -> list[KernelView]:
        """Return the kernels to compare, with what these prompts tell of them."""
        return _views(briefing, briefing.contrast)

    def _for_code(self, pool: Sequence[Node]) -> tuple[str, ...]:
        """Return the sections on how to write code, for a whole module.

        The example is left out where the pool has correct kernels by a model: they are better
        examples of the language. Kernels of the compiler are not.
        """
        written = any(
            node.proposal.origin != "compiler" and isinstance(node.evaluation, Passed)
            for node in pool
        )
        return ("rules", "language", *(() if written else ("example",)))

    def _with_pool(self, briefing: Briefing, pool: Sequence[Node], left_out: int) -> dict[str, Any]:
        return {
            "pool": _views(briefing, pool),
            "left_out": left_out,
        }

    def _prompt(
        self, label: str, briefing: Briefing, parts: Iterable[str], more: Mapping[str, Any]
    ) -> SectionedPrompt:
        """Render a prompt from sections, each `name` or `name:template`."""
        return assembled(label, self._sections(briefing, parts, more))

    def _next(
        self,
        label: str,
        before: Turn,
        briefing: Briefing,
        parts: Iterable[str],
        more: Mapping[str, Any],
    ) -> SectionedPrompt:
        """Render the next turn of a conversation, with what the turns before do not have."""
        return before.prompt.then(before.reply, self._sections(briefing, parts, more), label)

    def _sections(
        self, briefing: Briefing, parts: Iterable[str], more: Mapping[str, Any]
    ) -> list[Section]:
        variables = {**_variables(briefing), "contrast": self._contrasted(briefing), **more}
        sections = []
        for part in parts:
            name, _, template = part.partition(":")
            file = f"{template or name}.j2"
            if name == "example":
                language = briefing.problem.language
                kind = kind_of(briefing.problem, briefing.facts)
                variables["example"] = self.example(language, briefing.environment, kind)
            if name == "language":
                file = notes_name(briefing.problem.language)
            sections.append(Section(name, self._templates.render(file, variables)))
        return sections


def large_task(briefing: Briefing, plain: str) -> tuple[str, str]:
    """Return the label and the task of a large step: `plain`, or that of a step with an outline."""
    return ("large.outline", "task_outline") if briefing.outline else ("large", plain)


def read_prompts(folder: Path) -> dict[str, str]:
    """Return the templates in a user's folder, by the path of each file.

    Raises `BadInputError` if the folder does not exist or a file is not a template.
    """
    return read_templates(folder, TEMPLATES)


def _variables(briefing: Briefing) -> dict[str, Any]:
    """Return all shared variables, with empty values for unknown facts."""
    problem, facts, environment = briefing.problem, briefing.facts, briefing.environment
    if problem.language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise BadInputError(f"no prompts for kernels in {problem.language!r}; known: {known}")
    return {
        "problem": problem,
        "language": problem.language,
        "dialect": DIALECTS[problem.language],
        "hardware": hardware_of(problem, environment),
        "environment": environment,
        "versions": _versions(environment),
        "roofline": facts.roofline,
        "products": facts.products,
        "baselines_us": facts.baselines_us,
        "estimate": facts.estimate,
        "errors": facts.errors,
        "wider_bounds": _wider(facts.bounds),
        "outputs": facts.outputs,
        "inputs": facts.inputs,
        "workloads": facts.workloads,
        "labels": facts.labels,
        "notes": facts.notes,
        "rules": briefing.rules,
        "demand": briefing.demand.strip(),
        "tried": _views(briefing, briefing.tried),
        "summary": briefing.summary.strip(),
        "in_flight": briefing.in_flight,
        "others": briefing.others,
        "outline": briefing.outline,
        "patch_format": FORMAT,
    }


def _wider(bounds: Mapping[str, float]) -> list[tuple[float, list[str]]]:
    """Return the bounds beyond ten times that on the problem's own inputs, with their input sets.

    Bounds that read alike count as one.
    """
    own = next(iter(bounds.values()), 0.0)
    found: dict[str, tuple[float, list[str]]] = {}
    for name, bound in bounds.items():
        if bound > _MUCH_WIDER * own:
            found.setdefault(relative_error(bound), (bound, []))[1].append(name)
    return list(found.values())


def _views(briefing: Briefing, nodes: Iterable[Node]) -> list[KernelView]:
    return [kernel_view(node, briefing.feedback) for node in nodes]


def _slowest(briefing: Briefing, node: Node) -> str:
    """Return what small steps are told of the slowest kernel, where they are told of results."""
    if briefing.feedback != "full":
        return ""
    problem, roofline = briefing.problem, briefing.facts.roofline
    hardware = hardware_of(problem, briefing.environment)
    return slowest_kernel(node.evaluation, roofline, hardware, problem.precision)


def _item_view(briefing: Briefing, item: PlanItem) -> dict[str, Any]:
    """Return an item of a plan as templates read it."""
    attempts = _views(briefing, item.attempts)
    return {
        "number": item.number,
        "text": item.text,
        "state": item.state,
        "attempts": attempts,
    }


def _strategies(briefing: Briefing) -> Sequence[Strategy]:
    """Return the strategies that the language can express on this device."""
    hardware = hardware_of(briefing.problem, briefing.environment)
    return strategies_for(briefing.problem.language, hardware.generation)


def _versions(environment: Environment) -> dict[str, tuple[int, ...]]:
    return {name: _version(getattr(environment, name)) for name in ("torch", "triton")}


def _version(text: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    parts = text.split(".")[:2]
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else ()


def _telling_log(node: Node) -> str:
    """Return the end of a failure's detail, if its feedback does not name a line."""
    evaluation = node.evaluation
    if not isinstance(evaluation, Failed) or evaluation.status == "wrong_output":
        return ""
    if isinstance(evaluation.feedback, Fault) and evaluation.feedback.line:
        return ""
    return evaluation.detail[-_LOG_CHARS:].strip()
