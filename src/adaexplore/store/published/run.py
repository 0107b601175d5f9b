"""A run of the published search as a run of this package, in memory."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import ROOT_ID, Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.store import RunRecord
from adaexplore.core.settings.config import Config
from adaexplore.store.exported import memory_store
from adaexplore.store.published.layout import PublishedStep, name_of, reference_of, steps_in
from adaexplore.store.published.verdicts import evaluation_of, hardware_of, metrics_of
from adaexplore.store.sql import SqlStore

_BY = "AdaExplore as published"
_SETTINGS = {
    "exploration_weight": "c",
    "expand_exploration_ratio": "expand_ratio",
    "reward_alpha": "alpha",
    "p_large": "p_large",
    "small_step_limit": "small_limit",
    "pool_size": "pool_size",
    "pool_size_extra_max": "extra_max",
    "geometric_p": "extra_p",
    "max_memory_round": "window",
    "knowledge_1_threshold": "memory_threshold",
    "general_memory_path": "memory",
    "max_completion_tokens": "reply_tokens",
}
_SAMPLED = {"temperature": 1.0, "reply_tokens": 16_384}
"""How the released code samples without other options. Its option `temperature` reaches no call."""
_POLICIES = {"MCTS": "uct", "IRS": "irs", "IRL": "irl", "IRB": "irb", "IRLE": "irle", "PS": "ps"}


def read_published(path: Path) -> SqlStore:
    """Return a run, or a released kernel as a run of one step.

    Raises `BadInputError` for a file that is not what the published search writes.
    """
    steps = steps_in(path)
    if not steps:
        raise BadInputError(f"{path} is a run of the published search without a step")
    metrics = [metrics_of(step.metrics) for step in steps]
    options = _options(path.parent / "config.yaml") if path.is_dir() else {}
    model = str(options.get("model_name") or "published")
    hardware = next((name for one in metrics if one and (name := hardware_of(one))), "")
    store = memory_store(
        RunRecord(
            problem=Problem(name_of(path), reference_of(path), "triton", "cuda:0"),
            config=_config(options, len(steps)),
            proposers=(model,),
            environment=Environment(device="cuda:0", gpu=hardware),
            command="",
            created_at=0.0,
            plan={"reported_by": _BY},
            package_version=_BY,
        )
    )
    for node in _nodes(steps, metrics, model):
        store.record(node)
    return store


def _nodes(
    steps: Sequence[PublishedStep], metrics: Sequence[Mapping[str, Any] | None], model: str
) -> list[Node]:
    numbers = {step.id: number for number, step in enumerate(steps, 1)}
    return [
        Node(
            id=numbers[step.id],
            parent_id=ROOT_ID if step.parent_id is None else numbers[step.parent_id],
            step_kind=step.step_kind,
            proposal=Proposal(
                Candidate(step.source, "triton"),
                model,
                "",
                prompt=step.prompt,
                failure="" if step.source.strip() else "the reply had no code",
            ),
            evaluation=evaluation_of(found),
        )
        for step, found in zip(steps, metrics, strict=True)
    ]


def _config(options: Mapping[str, Any], steps: int) -> Config:
    """Return the published settings, with the run's own where they are known and fit."""
    config = Config(preset="adaexplore", steps=steps)
    own = {ours: options[theirs] for theirs, ours in _SETTINGS.items() if theirs in options}
    given = {**_SAMPLED, **own}
    given["policy"] = _POLICIES.get(str(options.get("agent_type")), "uct")
    given["reviser"] = options.get("disable_reviewer") is not True
    for name, value in given.items():
        try:
            config = Config.model_validate({name: value}).over(config)
        except ValidationError:
            continue
    return config


def _options(file: Path) -> dict[str, Any]:
    """Return the options in a run's config.yaml, one `key: value` a line; empty without it."""
    if not file.is_file():
        return {}
    pairs = (
        line.partition(":")[::2]
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines()
        if line[:1].isalpha()
    )
    return {key: _value(text.strip()) for key, text in pairs if text.strip()}


def _value(text: str) -> Any:
    named = {"true": True, "false": False, "null": None}
    if text in named:
        return named[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
