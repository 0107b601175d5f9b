"""The memory of a run: where its rules come from, and what they have to say on a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import Node
from adaexplore.core.problem import Language, Problem
from adaexplore.core.protocols.proposer import Context
from adaexplore.core.rule import Gain, Rule, Signature
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed, Passed
from adaexplore.languages import DIALECTS
from adaexplore.memory.files import BUNDLED, load_memory, memory_path
from adaexplore.memory.lint import advice, lint
from adaexplore.memory.retrieve import faster, relevant, tokens
from adaexplore.memory.signature import signature_of
from adaexplore.memory.topics import implied
from adaexplore.propose.model.proposer import ORIGIN as MODEL

NONE = "none"
"""The name of no memory."""
_UNTIL_A_FAILURE = 1 / 3
"""Share of `memory_tokens` for a model that has not failed, in a language that models know well."""


def memory_for(problem: Problem, asked: str) -> tuple[str, tuple[Rule, ...]]:
    """The name of a run's memory and its rules: the one asked for, or for Triton the package's own.

    Raises `BadInputError` for a file that is none, and where no rule is about the problem's
    language.
    """
    name = asked or (BUNDLED if problem.language == "triton" else NONE)
    rules = named_rules(name)
    if rules and not _about(rules, problem):
        others = " and ".join(sorted({DIALECTS[rule.language].title for rule in rules}))
        raise BadInputError(
            f"--memory {asked}: its rules are about {others}, and this problem's kernels are in "
            f"{problem.language}; leave it out"
        )
    return name, rules


def not_taught(language: Language, learning: str) -> str:
    """Return the objection to learning rules about a language in a way, "" without one."""
    if not DIALECTS[language].by_triton:
        return f"rules are about Triton and languages that it compiles, not {language}"
    if learning == "published" and language != "triton":
        return f"unchecked rules are about Triton; about {language} take --set learning=checked"
    return ""


_KEPT = "register_buffer"  # a topic of rules to keep what depends on weights alone


def _about(rules: Sequence[Rule], problem: Problem) -> list[Rule]:
    """Return the rules about a problem's language, without those to keep what it may not keep."""
    keeps_nothing = problem.is_shared or problem.checks.backward
    return [
        rule
        for rule in rules
        if rule.language == problem.language
        and not (keeps_nothing and rule.kind == "speed" and _KEPT in rule.topics)
    ]


def named_rules(name: str) -> tuple[Rule, ...]:
    """Return the rules of a memory by its name, which is the bundled one without a name.

    Raises `BadInputError` for a file that is none.
    """
    return () if name == NONE else tuple(load_memory(memory_path(name or BUNDLED)))


def require_recalled(rules: Sequence[Rule], settings: Config) -> None:
    """Raise `BadInputError` for a memory that no prompt would have a rule of, as it is set."""
    if rules and not settings.memory_threshold and not any(rule.is_checked for rule in rules):
        raise BadInputError(
            f"--memory {settings.memory}: nobody tested its rules, so none is chosen by itself: "
            "give the count from which they go into every prompt (--set memory_threshold=3, as "
            "published), or check them first: adaexplore memory check"
        )


def recalling(rules: Sequence[Rule], settings: Config) -> Callable[[Context], list[str]]:
    """Return a recall of the rules about the code of a step and the failures of the run.

    Rules that explain the last failure come first, then rules that explain earlier ones.

    Where that code is right they are also of what made such code faster. In a language that models
    know well they are few until the run's model has failed; where prompts tell nothing of other
    steps, until a kernel that they show has. With a threshold of the memory, all rules of that
    support are recalled at every step, unchecked rules too, which are marked unless the prompt
    tells only what the published search shows. Where prompts tell the verdict alone, the last
    failure chooses no rule.
    """
    if settings.memory_threshold:
        mark = "" if settings.contents == "published" else " (unchecked)"
        return lambda context: [
            rule.statement if rule.is_checked else f"{rule.statement}{mark}"
            for rule in _about(rules, context.problem)
            if rule.support >= settings.memory_threshold
        ]

    def rules_for(context: Context) -> list[str]:
        known = _about(rules, context.problem)
        if not known:
            return []
        seen = (*(context.history if settings.shows_tried else context.pool), *context.window)
        failures = _failures(seen)
        needs_all = not DIALECTS[context.problem.language].well_known or bool(failures)
        most_tokens = settings.memory_tokens
        sources = [node.candidate.source for node in (*context.pool, *context.window)]
        last = context.window[-1].evaluation if context.window else None
        told = last if settings.feedback == "full" else None
        text = "\n".join([implied(context.problem.source), *sources])
        triton = context.environment.triton
        target = context.problem.target or _target(context.environment)
        gpu = context.environment.gpu
        fast = (
            faster(known, text, triton=triton, target=target, gpu=gpu, most_tokens=most_tokens)
            if _is_right(context)
            else []
        )
        found = relevant(
            known,
            text,
            triton=triton,
            target=target,
            failure=signature_of(told) if isinstance(told, Failed) else None,
            earlier=failures if settings.feedback == "full" else (),
            demand=settings.demand,
            most_tokens=min(
                most_tokens - sum(tokens(rule) for rule, _ in fast),
                most_tokens if needs_all else int(most_tokens * _UNTIL_A_FAILURE),
            ),
            fill=not any(sources),
        )
        return [*(rule.statement for rule in found), *(_with_gain(*pair) for pair in fast)]

    return rules_for


def _is_right(context: Context) -> bool:
    """Return True for a step that begins with correct code, which only has to get faster."""
    shown = context.window[-1:] or context.pool
    return any(isinstance(node.evaluation, Passed) for node in shown)


def _failures(nodes: Iterable[Node]) -> frozenset[Signature]:
    """Return the ways in which kernels of the model have failed among these steps."""
    return frozenset(
        signature_of(node.evaluation)
        for node in nodes
        if node.proposal.origin == MODEL
        and isinstance(node.evaluation, Failed)
        and node.evaluation.status not in ("not_run", "infra_error")
    )


def _with_gain(rule: Rule, gain: Gain) -> str:
    """A speed rule's statement, and what it was worth where it was measured."""
    return f"For speed: {rule.statement} (Measured: {gain.speedup:.2g}x on {gain.where.gpu}.)"


def linting(rules: Sequence[Rule]) -> Callable[[Context, str], list[str]]:
    """Return a check for the rules that a source breaks, each with its remedy."""

    def faults(context: Context, source: str) -> list[str]:
        known = _about(rules, context.problem)
        triton = context.environment.triton
        target = context.problem.target or _target(context.environment)
        return [advice(hit, source) for hit in lint(source, known, triton, target)]

    return faults


def _target(environment: Environment) -> str:
    """The target's name of the GPU that is there."""
    return f"sm_{environment.compute_capability}".replace(".", "")
