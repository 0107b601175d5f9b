"""Proposals from TorchInductor. This module imports no torch: the work is a job elsewhere."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import Node
from adaexplore.core.problem import Language
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.proposer import Context, Dialogue
from adaexplore.core.verdict.evaluation import rank
from adaexplore.propose.compiler.families import Family, families, knobs
from adaexplore.propose.compiler.identity import fingerprint
from adaexplore.propose.compiler.patches import launch_patches

ORIGIN = "compiler"
JOB = "adaexplore.propose.compiler.job:run"
MAX_TRIES: dict[Language, int] = {"cpp": 6, "triton": 3}
"""Number of choices sent in one job: they share its trace, and a known candidate costs no step.

On a GPU each choice is also run and autotuned, which takes time.
"""

_PARENTS = 10
"""Number of best candidates that combinations are made of."""

RunJob = Callable[[str, dict[str, Any], float], dict[str, Any]]
"""Runs `module:function` on a request in its own process, within a number of seconds.

Raises `TimeoutError` if it ran too long, `RuntimeError` if it died.
"""


class CompilerProposer:
    """Proposer whose large steps choose an option family and whose small steps change one knob.

    A small step may also change one launch parameter. Deterministic: the same context and seed give
    the same proposal. A candidate of the history is proposed again only if none of `MAX_TRIES`
    choices gives another.
    """

    def __init__(self, run_job: RunJob, timeout_s: float) -> None:
        self._run_job = run_job
        self._timeout_s = timeout_s

    def begin(self, context: Context) -> Dialogue:
        """Return one candidate, or the reason why there is none; asks no model."""
        yield from ()
        if context.problem.language not in MAX_TRIES:
            known = " and ".join(MAX_TRIES)
            raise BadInputError(f"the compiler writes {known}, not {context.problem.language}")
        return self._propose(context)

    def _propose(self, context: Context) -> Proposal:
        rng = random.Random(context.seed)
        if context.step_kind == "large":
            return self._compile(context, _large_tries(context, rng))
        parent = context.window[-1]
        patch = _launch_patch(context, parent, rng)
        if patch is not None:
            return patch
        return self._compile(context, _small_tries(context, parent, rng))

    def close(self) -> None:
        """Do nothing: the job runner owns the processes."""

    def _compile(self, context: Context, tries: list[Family]) -> Proposal:
        problem = context.problem
        tries = tries[: MAX_TRIES[problem.language]]
        request = {
            "problem": problem.to_json(),
            "tries": [
                {
                    "family": t.name,
                    "knobs": dict(t.knobs),
                    "needs": sorted(t.needs),
                    "change": t.change,
                }
                for t in tries
            ],
            "known": sorted({fingerprint(node.candidate.source) for node in context.history}),
        }
        try:
            reply = self._run_job(JOB, request, self._timeout_s)
        except TimeoutError:
            reason = f"the compiler took more than {self._timeout_s:g} s"
            return _failure(context, reason, tries[:1])
        except RuntimeError as error:
            return _failure(context, f"the compiler's process died: {error}", tries[:1])
        if "failure" in reply:
            return _failure(context, reply["failure"], tries)
        settings = {key: reply[key] for key in ("family", "knobs", "features", "passed_over")}
        candidate = Candidate(reply["source"], problem.language)
        return Proposal(candidate, ORIGIN, reply["note"], settings | {"patch": ""})


def _failure(context: Context, reason: str, tries: list[Family]) -> Proposal:
    """Return no candidate, with a note of the tried families, so that the next step tries others.

    After a lost job, only its first family counts as tried: its progress is unknown.
    """
    return Proposal(
        Candidate("", context.problem.language),
        ORIGIN,
        reason,
        {
            "family": tries[0].name if tries else "",
            "knobs": dict(tries[0].knobs) if tries else {},
            "features": [],
            "passed_over": {t.name: reason for t in tries},
            "patch": "",
        },
        failure=reason,
    )


def _large_tries(context: Context, rng: random.Random) -> list[Family]:
    """Return families not yet tried, best first; then combinations of the best candidates."""
    problem = context.problem
    tried = {
        name
        for settings in _own_settings(context.history)
        for name in (settings["family"], *settings["passed_over"])
    }
    fresh = [f for f in families(problem.device, problem.precision) if f.name not in tried]
    if fresh and context.in_flight:  # other steps in flight try the first ones
        taken = context.in_flight % len(fresh)
        return fresh[taken:] + fresh[:taken]
    if fresh:
        return _slightly_shuffled(fresh, rng)
    return _combinations(context, rng)


def _slightly_shuffled(found: list[Family], rng: random.Random) -> list[Family]:
    """Return the families in order of promise, with occasional exchanges of neighbours."""
    return [f for _, f in sorted(enumerate(found), key=lambda item: item[0] + 1.5 * rng.random())]


def _combinations(context: Context, rng: random.Random) -> list[Family]:
    """Return the knobs of two good candidates together, and one more changed at random."""
    problem = context.problem
    nodes = sorted(
        (node for node in context.history if node.proposal.origin == ORIGIN),
        key=lambda node: rank(node.evaluation),
        reverse=True,
    )
    shown = [node for node in context.pool if node.proposal.origin == ORIGIN]
    parents = [node.proposal.settings for node in [*shown, *nodes][:_PARENTS]]
    features = _features(context.history)
    choices = _turns(problem.device, problem.precision, features)
    tries = []
    for _ in range(MAX_TRIES[problem.language]):
        first, second = rng.choice(parents), rng.choice(parents)
        merged = {**second["knobs"], **first["knobs"]}
        if choices:
            name, values = rng.choice(choices)
            merged[name] = rng.choice(values)
        tries.append(Family("combination", merged))
    return tries


def _small_tries(context: Context, parent: Node, rng: random.Random) -> list[Family]:
    """Return the parent's knobs with one of them changed."""
    problem = context.problem
    settings = parent.proposal.settings if parent.proposal.origin == ORIGIN else {}
    current = dict(settings.get("knobs", {}))
    features = set(settings.get("features", ())) or _features(context.history)
    turns = [
        Family(
            settings.get("family", "default"),
            current | {name: value},
            change=f"{name} {current.get(name, values[0])} -> {value}",
        )
        for name, values in _turns(problem.device, problem.precision, features)
        for value in values
        if current.get(name, values[0]) != value
    ]
    rng.shuffle(turns)
    return turns


def _turns(device: str, precision: Any, features: set[str]) -> list[tuple[str, tuple[Any, ...]]]:
    """Return the knobs that can matter for a graph with these features, with their values."""
    return [
        (name, knob.values)
        for name, knob in knobs(device, precision).items()
        if knob.needs <= features
    ]


def _launch_patch(context: Context, parent: Node, rng: random.Random) -> Proposal | None:
    """Return the parent with one launch parameter changed, in half of the cases."""
    known = {node.candidate.digest for node in context.history}
    patches = [
        patch
        for patch in launch_patches(parent.candidate.source)
        if Candidate(patch.source, parent.candidate.language).digest not in known
    ]
    if not patches or rng.random() < 0.5:
        return None
    patch = rng.choice(patches)
    settings = {"family": "", "knobs": {}, "features": [], "passed_over": {}}
    if parent.proposal.origin == ORIGIN:
        settings |= dict(parent.proposal.settings)
    return Proposal(
        Candidate(patch.source, parent.candidate.language),
        ORIGIN,
        patch.note,
        settings | {"patch": patch.note, "passed_over": {}},
    )


def _own_settings(history: Iterable[Node]) -> list[Mapping[str, Any]]:
    return [node.proposal.settings for node in history if node.proposal.origin == ORIGIN]


def _features(history: Iterable[Node]) -> set[str]:
    """Return the contents of the problem's graph, if earlier steps found them."""
    return {feature for settings in _own_settings(history) for feature in settings["features"]}
