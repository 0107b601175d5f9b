"""The data of the page's script: one JSON object with every step, and every text once.

Candidates of a search share most of their lines, and prompts quote candidates. Texts are therefore
stored as indices into one table of distinct lines. This keeps a report of thousands of steps to a
few megabytes.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from adaexplore.core.node import Node
from adaexplore.core.text.feedback import render
from adaexplore.core.text.units import share
from adaexplore.core.verdict.evaluation import Estimate, Timing, rank
from adaexplore.report import text
from adaexplore.report.run.exchanges import new_messages
from adaexplore.report.run.highlight import highlight, plain
from adaexplore.report.run.summary import Row, Summary

HIGHLIGHT_BUDGET = 4_000_000
"""Characters of source that get colours, best candidates first (about 2 s per million)."""


class _TextTable:
    """Distinct lines, and documents as indices into them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.runs: list[str] = []
        self.documents: list[list[int]] = []
        self._line_ids: dict[tuple[str, str], int] = {}
        self._document_ids: dict[str, int] = {}

    def add(self, content: str, lines_of: Callable[[str], list[tuple[str, str]]] = plain) -> int:
        """Return the document's index, -1 for an empty text. A text's first `lines_of` is kept."""
        if not content:
            return -1
        if content not in self._document_ids:
            self._document_ids[content] = len(self.documents)
            self.documents.append(_spans([self._line(*line) for line in lines_of(content)]))
        return self._document_ids[content]

    def _line(self, line: str, runs: str) -> int:
        number = self._line_ids.setdefault((line, runs), len(self.lines))
        if number == len(self.lines):
            self.lines.append(line)
            self.runs.append(runs)
        return number


def page_json(summary: Summary) -> str:
    """Return the page's data as JSON that is safe inside a script element."""
    texts = _TextTable()
    _add_sources(texts, summary.rows)
    steps = [_step(row, texts) for row in summary.rows]
    return _dump(texts, steps, reference=texts.add(_normal(summary.problem.source), highlight))


def pair_json(first: Row, second: Row) -> str:
    """Return two steps of any runs as `page_json` does; the second has its diff to the first."""
    texts = _TextTable()
    _add_sources(texts, [first, second])
    steps = [_step(row, texts) for row in (first, second)]
    steps[1]["diff"] = _diff(first.node, second.node)
    return _dump(texts, steps)


def _dump(texts: _TextTable, steps: list[dict[str, Any]], **more: Any) -> str:
    data = {
        **more,
        "steps": steps,
        "lines": texts.lines,
        "runs": texts.runs,
        "documents": texts.documents,
    }
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _add_sources(texts: _TextTable, rows: Sequence[Row]) -> None:
    """Add every candidate's source, coloured while the budget lasts."""
    left = HIGHLIGHT_BUDGET
    for row in sorted(rows, key=lambda row: rank(row.node.evaluation), reverse=True):
        source = _normal(row.node.candidate.source)
        left -= len(source)
        texts.add(source, highlight if left >= 0 else plain)


def _step(row: Row, texts: _TextTable) -> dict[str, Any]:
    node = row.node
    evaluation = node.evaluation
    return {
        "id": node.id,
        "parent": row.parent.id if row.parent else 0,
        "depth": row.depth,
        "kind": node.step_kind,
        "origin": node.proposal.origin,
        "family": row.family,
        "note": text.one_line(node.proposal.note),
        "status": evaluation.status,
        "reason": text.one_line(row.reason),
        "best": row.best,
        "path": row.on_best_path,
        "improved": row.improved,
        "reused": node.reused,
        "structure": row.structure,
        **_measurement(row.timing),
        "precision": row.passed.precision if row.passed else None,
        "estimate": _estimate(row),
        "labels": list(row.passed.labels) if row.passed else [],
        "error": [_number(evaluation.error), text.relative_error(evaluation.error)],
        "evaluation": _evaluation_facts(row),
        "settings": text.facts(node.proposal.settings),
        "source": texts.add(_normal(node.candidate.source)),
        "diff": _diff(row.parent, node),
        "turns": _turns(row, texts),
        "feedback": texts.add(_normal(render(evaluation))),
        "detail": texts.add(_normal(evaluation.detail)),
    }


def _turns(row: Row, texts: _TextTable) -> list[tuple[str, int, int]]:
    """Return the exchanges of a step as (title, prompt, reply).

    If the exchanges were not kept, return the prompt and reply of the proposal.
    """
    if not row.exchanges:
        proposal = row.node.proposal
        said = texts.add(_normal(proposal.prompt)), texts.add(_normal(proposal.reply))
        return [("", *said)] if proposal.prompt or proposal.reply else []
    turns = []
    for call, messages in zip(row.exchanges, new_messages(row.exchanges), strict=True):
        prompt = "\n\n".join(f"[{message.role}]\n{message.text}" for message in messages)
        reply = call.reply
        facts = [call.prompt.label, reply.model, text.usage(reply.usage)]
        facts += [] if reply.finish == "complete" else [reply.finish]
        title = " · ".join(text.one_line(fact) for fact in facts if fact)
        turns.append((title, texts.add(_normal(prompt)), texts.add(_normal(reply.text))))
    return turns


def _measurement(timing: Timing | None) -> dict[str, Any]:
    """Return numbers to sort and draw by, each with its readable form."""
    if timing is None:
        return {"time": None, "speedup": None, "eager": None, "interval": None}
    return {
        "time": [_number(timing.time_us), text.duration_us(timing.time_us)],
        "speedup": [_number(timing.speedup), text.speedup(timing.speedup)],
        "eager": [_number(timing.speedup_eager), text.speedup(timing.speedup_eager)],
        "interval": [*map(_number, timing.speedup_ci), text.interval(timing.speedup_ci)],
    }


def _estimate(row: Row) -> str:
    """Return the estimate in words; empty for a measured candidate."""
    guess = row.passed.timing if row.passed else None
    return text.estimate(guess) if isinstance(guess, Estimate) else ""


def _over_compile(timing: Timing) -> list[tuple[str, str]]:
    if timing.speedup_compile is None:
        return []
    return [("Speedup over torch.compile's defaults", text.speedup(timing.speedup_compile))]


def _evaluation_facts(row: Row) -> list[tuple[str, str]]:
    """Return the evaluation as (name, value) lines."""
    node = row.node
    evaluation = node.evaluation
    facts: list[tuple[str, str]] = [("Status", evaluation.status)]
    if row.timing:
        timing = row.timing
        low, high = timing.time_ci_us
        facts += [
            (
                "Like-for-like speedup",
                f"{text.speedup(timing.speedup)} (95 % {text.interval(timing.speedup_ci)})",
            ),
            ("Strongest baseline", text.baseline_name(timing.strongest)),
            ("Speedup over eager", text.speedup(timing.speedup_eager)),
            *_over_compile(timing),
            (
                "Time",
                f"{text.duration_us(timing.time_us)} "
                f"(95 % {text.duration_us(low)} – {text.duration_us(high)})",
            ),
            *(
                (text.baseline_name(name), text.duration_us(time))
                for name, time in timing.baselines_us.items()
            ),
            ("Timed calls", str(timing.samples)),
        ]
    if row.passed:
        if isinstance(row.passed.timing, Estimate):
            facts.append(("Time", text.estimate(row.passed.timing)))
        facts.append(("Precision class", row.passed.precision))
        facts += [(f"Workload {w.name}", text.workload(w.timing)) for w in row.passed.workloads]
        if row.passed.roofline:
            reached = row.passed.roofline
            facts.append(("Share of the roofline", f"{share(reached.share)} ({reached.bound_by})"))
        if row.passed.labels:
            facts.append(("Labels", ", ".join(row.passed.labels)))
    if evaluation.error is not None:
        facts.append(("Relative error against float64", text.relative_error(evaluation.error)))
    if node.repeats:
        facts.append(
            ("Measured before it took the lead", ", ".join(map(text.measured, node.repeats)))
        )
    if node.reused:
        facts.append(("Taken over", "an identical candidate had been evaluated before"))
    if evaluation.taken_over:
        facts.append(("Taken over from the cache", text.origin_of(evaluation.taken_over)))
    facts += [
        ("Proposing", text.duration_s(node.propose_s)),
        ("Evaluating", text.cost_s(evaluation.cost)),
        ("Device held", text.duration_s(evaluation.cost.device_s)),
    ]
    return facts


def _diff(parent: Node | None, node: Node) -> list[list[int]] | None:
    """Return changed line ranges [from, to) of parent and node; None without both sources."""
    if parent is None or not parent.candidate.source or not node.candidate.source:
        return None
    before = _normal(parent.candidate.source).split("\n")
    after = _normal(node.candidate.source).split("\n")
    opcodes = difflib.SequenceMatcher(None, before, after).get_opcodes()
    return [[i1, i2, j1, j2] for tag, i1, i2, j1, j2 in opcodes if tag != "equal"]


def _spans(numbers: Sequence[int]) -> list[int]:
    """Return line indices as flat pairs of first and count: 4 5 6 2 becomes 4 3 2 1."""
    spans: list[int] = []
    for number in numbers:
        if spans and number == spans[-2] + spans[-1]:
            spans[-1] += 1
        else:
            spans += [number, 1]
    return spans


def _normal(content: str) -> str:
    return content.replace("\r\n", "\n")


def _number(value: float | None) -> float | None:
    """Return a number that JSON can hold, None for infinities and NaN."""
    return value if value is not None and math.isfinite(value) else None
