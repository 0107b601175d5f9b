"""What a language model is asked, for every form of step."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.core.evaluation import Failed, Fault
from adaexplore.core.node import Node
from adaexplore.core.problem import LANGUAGES, Problem
from adaexplore.languages import DIALECTS
from adaexplore.llm.templating import Templates, read_templates
from adaexplore.propose.model.hardware import hardware_of
from adaexplore.propose.model.kernels import path_of, shown
from adaexplore.propose.model.patches import FORMAT
from adaexplore.propose.model.sections import Section, SectionedPrompt, assembled
from adaexplore.propose.model.strategies import CATALOGUE, strategies_for

OWN = files("adaexplore.propose.model") / "templates"
"""The package's own templates."""

SHARED: Mapping[str, str] = {
    "problem": "the problem: `source`, `language`, `device`, `precision`, `mode`, `target`, ...",
    "language": f"the language of the kernels: one of {', '.join(LANGUAGES)}",
    "dialect": "what is known of the language: `title`, `kernels`, `imports`, `on_gpu`, ...",
    "hardware": "the device: `name`, `capability`, `multiprocessors`, `sheet`, `limits`, ...",
    "environment": "what the run recorded of the machine: versions, drivers, processors",
    "versions": "versions of torch and Triton as pairs of numbers, such as (3, 6); () if unknown",
    "roofline": "what was measured of device and problem, and the floor; None if it was not",
    "baselines_us": "times of `eager` and `compile` in microseconds; empty if not measured",
    "estimate": "of the reference where no device is there: `time_us`, `bound_by`; else None",
    "errors": "PyTorch's own relative error by precision class",
    "outputs": "the reference's outputs, each with `path`, `shape` and `dtype`",
    "labels": "what the problem is, each with why",
    "notes": "warnings about the reference, such as a baseline that is wrong",
    "rules": "rules from memory, most useful first",
    "demand": "what the user wants every kernel to do besides; empty if nothing",
    "tried": "steps like this one and what became of them, best first",
    "in_flight": "how many steps are under way beside this one",
    "patch_format": "a patch as the parser of replies reads it",
}
"""Variables that every template may use, and what they hold."""

_LEFT_OUT = {"left_out": "how many older kernels are not shown, for want of room"}
_WINDOW = {"window": "kernels made one from another, oldest first, the last to be changed"}
_GUIDANCE = {"guidance": "the reviser's changes, empty if it was not asked"}
_FAILED = {"kernel": "the kernel that failed", "log": "the end of its log where that says more"}

TEMPLATES: Mapping[str, Mapping[str, str]] = {
    "system.j2": {},
    "problem.j2": {},
    "hardware.j2": {},
    "rules.j2": {},
    **{f"{language}.j2": {} for language in LANGUAGES},
    "kernel.j2": {},
    "example.j2": {"example": "a module in the language, which runs as it stands"},
    "compiler.j2": {"compiler_source": "Inductor's own kernels for the problem"},
    "pool.j2": {"pool": "correct kernels", **_LEFT_OUT},
    "verdicts.j2": {"pool": "correct kernels, of which sources are not shown"},
    "strategies.j2": {"strategies": "those of the catalogue that fit the language"},
    "strategy.j2": {"strategy": "the one chosen, or None", "plan": "what was said of it"},
    "contrast.j2": {"faster": "a kernel", "slower": "another"},
    "tried.j2": {},
    "earlier.j2": _WINDOW,
    "current.j2": _WINDOW,
    "window.j2": {**_WINDOW, **_LEFT_OUT},
    "guidance.j2": _GUIDANCE,
    "failed.j2": _FAILED,
    "task_large.j2": {"pool": "correct kernels"},
    "task_plan.j2": {"pool": "correct kernels"},
    "task_strategy.j2": {"pool": "correct kernels"},
    "task_contrast.j2": {},
    "task_reviser.j2": _WINDOW,
    "task_tuner.j2": {**_WINDOW, **_GUIDANCE},
    "task_repair.j2": {},
    "patches.j2": {},
    "module.j2": {},
    "again.j2": {"reason": "what was wrong with the reply"},
    "cut_off.j2": {},
    "lint.j2": {"faults": "what rules say about the module"},
}
"""Every template, with the variables that it may use beside the shared ones."""

_FOLLOW_UPS = ("again.j2", "cut_off.j2", "lint.j2")  # in a conversation, which has the rest
_LOG_CHARS = 2000
_COMMON = ("system", "problem", "hardware")
"""The same for all steps of a run and always first, so that providers can cache them."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What stays the same for all questions of a step, mostly of a run.

    `facts` is what the evaluator found out about the reference and `environment` about the machine,
    as a run records them. `rules` are from memory, most useful first. `compiler_source` is
    Inductor's kernels for the problem, empty where they help nobody, and `demand` what the user
    wants of every kernel besides. `tried` are steps like this one, best first, and `in_flight` is
    how many are under way.
    """

    problem: Problem
    facts: Mapping[str, Any]
    environment: Mapping[str, Any]
    rules: Sequence[str] = ()
    compiler_source: str = ""
    demand: str = ""
    tried: Sequence[Node] = ()
    in_flight: int = 0


class Prompts:
    """Makes the prompts, from templates that `others` (`read_prompts`) may replace one by one.

    Raises `BadInputError`, with file and line, for a template that cannot be used, and for a
    problem whose language has no notes here. Every prompt has its sections' costs with it.
    """

    def __init__(self, others: Mapping[str, str] = MappingProxyType({})) -> None:
        known = {
            name: own.keys() if name in _FOLLOW_UPS else {*SHARED, *own}
            for name, own in TEMPLATES.items()
        }
        self._templates = Templates(OWN, others, known)
        self._examples = {language: _example(language) for language in LANGUAGES}

    @property
    def digest(self) -> str:
        """Content hash of everything that prompts are made of: templates, examples, strategies."""
        parts = repr((self._templates.digest, self._examples, CATALOGUE))
        return hashlib.sha256(parts.encode()).hexdigest()

    def large(self, setting: Setting, pool: Sequence[Node], left_out: int = 0) -> SectionedPrompt:
        """Asks for a new module, faster than the kernels of `pool`.

        `left_out` of its kernels are not in it for want of room, and the model is told so.
        """
        parts = (*self._for_writing(setting, pool), "pool", "tried", "task:task_large")
        return self._prompt("large", setting, parts, self._with_pool(setting, pool, left_out))

    def strategy(self, setting: Setting, pool: Sequence[Node]) -> SectionedPrompt:
        """Asks for the name of a strategy and two sentences on how to follow it."""
        parts = (*_COMMON, "kernels:verdicts", "tried", "strategies", "task:task_strategy")
        hardware = hardware_of(setting.problem, setting.environment)
        choice = strategies_for(setting.problem.language, hardware.generation)
        more = {"pool": [shown(node) for node in pool], "strategies": choice}
        return self._prompt("strategy", setting, parts, more)

    def large_with_strategy(
        self,
        setting: Setting,
        pool: Sequence[Node],
        strategy: str,
        plan: str,
        left_out: int = 0,
    ) -> SectionedPrompt:
        """Asks for a new module that follows a plan.

        `strategy` names one of the catalogue; with any other name the plan stands alone.
        """
        parts = (*self._for_writing(setting, pool), "pool", "tried", "strategy", "task:task_plan")
        chosen = next((s for s in CATALOGUE if s.name == strategy), None)
        more = {"strategy": chosen, "plan": plan}
        more |= self._with_pool(setting, pool, left_out)
        return self._prompt("large.strategy", setting, parts, more)

    def contrastive(self, setting: Setting, faster: Node, slower: Node) -> SectionedPrompt:
        """Asks what made the difference between two kernels, and for a better one."""
        parts = (*_COMMON, "rules", "language", "contrast", "task:task_contrast")
        more = {"faster": shown(faster), "slower": shown(slower)}
        return self._prompt("large.contrast", setting, parts, more)

    def reviser(self, setting: Setting, window: Sequence[Node]) -> SectionedPrompt:
        """Asks for the one to three most important changes to the last kernel of `window`."""
        parts = (*_COMMON, "language", "earlier", "current", "tried", "task:task_reviser")
        more = {"window": [shown(node) for node in window]}
        return self._prompt("small.reviser", setting, parts, more)

    def tuner(
        self, setting: Setting, window: Sequence[Node], guidance: str = "", left_out: int = 0
    ) -> SectionedPrompt:
        """Asks for patches to the last kernel of `window`.

        `left_out` older kernels are not in it for want of room, and the model is told so.
        """
        known = "guidance" if guidance.strip() else "tried"  # who gave it knew what was tried
        parts = (*_COMMON, "rules", "language", "window", known, "task:task_tuner")
        more = {"window": path_of(window), "guidance": guidance.strip(), "left_out": left_out}
        return self._prompt("small.tuner", setting, parts, more)

    def repair(self, setting: Setting, node: Node) -> SectionedPrompt:
        """Asks for the least change that makes a failed kernel right."""
        parts = ("system", "problem", "rules", "language", "failed", "task:task_repair")
        more = {"kernel": shown(node), "log": _telling_log(node)}
        return self._prompt("repair", setting, parts, more)

    def again(self, reason: str) -> str:
        """Tells a model why its reply cannot be used, and asks for another in the same form."""
        return self._templates.render("again.j2", {"reason": reason.strip()})

    def cut_off(self) -> str:
        """Asks a model to go on with a reply that was cut off at its limit."""
        return self._templates.render("cut_off.j2", {})

    def lint(self, faults: Sequence[str]) -> str:
        """Tells a model what its module does that is known to fail, and asks it to mend that."""
        variables = {"faults": faults, "patch_format": FORMAT}
        return self._templates.render("lint.j2", variables)

    def _for_writing(self, setting: Setting, pool: Sequence[Node]) -> tuple[str, ...]:
        """What stands before the pool where a whole module is asked for.

        Kernels that somebody wrote are the better examples of a language; Inductor's are none.
        """
        written = any(node.proposal.origin != "compiler" for node in pool)
        repeated = any(node.candidate.source == setting.compiler_source for node in pool)
        example = () if written else ("example",)
        compiler = ("compiler",) if setting.compiler_source and not repeated else ()
        return (*_COMMON, "rules", "language", *example, *compiler)

    def _with_pool(self, setting: Setting, pool: Sequence[Node], left_out: int) -> dict[str, Any]:
        return {
            "pool": [shown(node) for node in pool],
            "left_out": left_out,
            "example": self._examples.get(setting.problem.language, ""),
            "compiler_source": setting.compiler_source,
        }

    def _prompt(
        self, label: str, setting: Setting, parts: Iterable[str], more: Mapping[str, Any]
    ) -> SectionedPrompt:
        """A prompt of sections, each `name` or `name:template`."""
        variables = {**_variables(setting), **more}
        sections = []
        for part in parts:
            name, _, template = part.partition(":")
            file = template or (setting.problem.language if name == "language" else name)
            sections.append(Section(name, self._templates.render(f"{file}.j2", variables)))
        return assembled(label, sections)


def read_prompts(folder: Path) -> dict[str, str]:
    """The templates in a folder of the user's own, by the path of each file.

    Raises `BadInputError` for a folder that is none, and a file that is no template.
    """
    return read_templates(folder, TEMPLATES)


def _variables(setting: Setting) -> dict[str, Any]:
    """The shared variables, all of them, whatever is known."""
    problem, facts, environment = setting.problem, setting.facts, setting.environment
    if problem.language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise BadInputError(f"no prompts for kernels in {problem.language!r}; known: {known}")
    return {
        "problem": problem,
        "language": problem.language,
        "dialect": DIALECTS[problem.language],
        "hardware": hardware_of(problem, environment),
        "environment": environment,
        "versions": {name: _version(environment.get(name)) for name in ("torch", "triton")},
        "roofline": facts.get("roofline"),
        "baselines_us": facts.get("baselines_us", {}),
        "estimate": facts.get("estimate"),
        "errors": facts.get("errors", {}),
        "outputs": facts.get("outputs", []),
        "labels": facts.get("labels", {}),
        "notes": facts.get("notes", []),
        "rules": setting.rules,
        "demand": setting.demand.strip(),
        "tried": [shown(node) for node in setting.tried],
        "in_flight": setting.in_flight,
        "patch_format": FORMAT,
    }


def _version(text: str | None) -> tuple[int, ...]:
    """The first two numbers of a version."""
    parts = (text or "").split(".")[:2]
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else ()


def _telling_log(node: Node) -> str:
    """The end of a failure's detail, where its feedback does not name the line to look at."""
    evaluation = node.evaluation
    if not isinstance(evaluation, Failed) or evaluation.status == "wrong_output":
        return ""
    if isinstance(evaluation.feedback, Fault) and evaluation.feedback.line:
        return ""
    return evaluation.detail[-_LOG_CHARS:].strip()


def _example(language: str) -> str:
    folder = files("adaexplore.propose.model") / "examples"
    return (folder / f"{language}.py.txt").read_text(encoding="utf-8")
