"""Conversion of records to database rows and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Row

from adaexplore.core import codec
from adaexplore.core.ask import Ask, AskRecord, Exchange
from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import Message, Prompt, Reply, Usage
from adaexplore.core.protocols.store import RunRecord
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation_json import evaluation_from_json, evaluation_to_json
from adaexplore.core.verdict.facts import ReferenceFacts


def run_values(run: RunRecord) -> dict[str, Any]:
    """Return a row of `schema.run`."""
    return {
        "format_version": run.format_version,
        "package_version": run.package_version,
        "problem": run.problem.to_json(),
        "config": run.config.model_dump(mode="json"),
        "proposers": list(run.proposers),
        "environment": run.environment.to_json(),
        "command": run.command,
        "created_at": run.created_at,
        "reference": run.reference.to_json(),
    }


def run_record(row: Row[Any], plan: Mapping[str, Any]) -> RunRecord:
    """Return the run of a row, with its plan."""
    values = dict(row._mapping)
    del values["run_id"]
    values["problem"] = Problem.from_json(values["problem"])
    values["environment"] = Environment.from_json(values["environment"])
    values["reference"] = ReferenceFacts.from_json(values["reference"])
    values["config"] = Config.model_validate(values["config"])
    values["proposers"] = tuple(values["proposers"])
    return RunRecord(**values, plan=plan)


def candidate_values(candidate: Candidate) -> dict[str, str]:
    """Return a row of `schema.candidates`."""
    return {
        "digest": candidate.digest,
        "language": candidate.language,
        "source": candidate.source,
    }


def node_values(node: Node) -> dict[str, Any]:
    """Return a row of `schema.nodes`."""
    proposal = node.proposal
    return {
        "id": node.id,
        "parent_id": node.parent_id,
        "step_kind": node.step_kind,
        "origin": proposal.origin,
        "settings": dict(proposal.settings),
        "note": proposal.note,
        "prompt": proposal.prompt,
        "reply": proposal.reply,
        "failure": proposal.failure,
        "candidate": node.candidate.digest,
        "evaluation": evaluation_to_json(node.evaluation),
        "started_at": node.started_at,
        "propose_s": node.propose_s,
        "reused": node.reused,
        "ask_id": node.ask_id,
    }


def repeat_values(node: Node) -> list[dict[str, Any]]:
    """Return rows of `schema.repeats`."""
    return [
        {"node_id": node.id, "evaluation": evaluation_to_json(repeat)} for repeat in node.repeats
    ]


def node_of(row: Row[Any], candidate: Candidate, repeats: Iterable[Row[Any]] = ()) -> Node:
    """Return the node of a row and of the rows of its repeats."""
    proposal = Proposal(
        candidate=candidate,
        origin=row.origin,
        note=row.note,
        settings=row.settings,
        prompt=row.prompt,
        reply=row.reply,
        failure=row.failure,
    )
    return Node(
        id=row.id,
        parent_id=row.parent_id,
        step_kind=row.step_kind,
        proposal=proposal,
        evaluation=evaluation_from_json(row.evaluation),
        started_at=row.started_at,
        ask_id=row.ask_id,
        propose_s=row.propose_s,
        reused=row.reused,
        repeats=tuple(evaluation_from_json(repeat.evaluation) for repeat in repeats),
    )


def ask_values(ask: Ask) -> dict[str, Any]:
    """Return a row of `schema.asks` for an open ask."""
    return asdict(ask) | {"state": "open", "proposal": None}


def ask_record(row: Row[Any]) -> AskRecord:
    """Return the ask of a row."""
    values = dict(row._mapping)
    del values["run_id"]
    state, proposal = values.pop("state"), values.pop("proposal")
    return AskRecord(codec.read(Ask, values), state, proposal and codec.read(Proposal, proposal))


def proposal_values(proposal: Proposal) -> dict[str, Any]:
    """Return plain data for JSON."""
    return asdict(proposal) | {"settings": dict(proposal.settings)}


def exchange_values(exchange: Exchange) -> dict[str, Any]:
    """Return a row of `schema.calls`."""
    prompt, reply = exchange.prompt, exchange.reply
    return {
        "ask_id": exchange.ask_id,
        "label": prompt.label,
        "prompt_digest": prompt.digest,
        "messages": [asdict(message) for message in prompt.messages],
        "model": reply.model,
        "text": reply.text,
        "finish": reply.finish,
        "usage": reply.usage.to_json(),
        "latency_s": reply.latency_s,
        "attempts": reply.attempts,
        "at": exchange.at,
    }


def exchange_of(row: Row[Any]) -> Exchange:
    """Return the exchange of a row."""
    prompt = Prompt(tuple(Message(**m) for m in row.messages), row.label)
    usage = Usage(**row.usage)
    reply = Reply(row.text, row.model, row.finish, usage, row.latency_s, row.attempts)
    return Exchange(row.ask_id, prompt, reply, row.at)
