"""`python -m tests.adversarial`: judges both corpora and prints how many verdicts are right."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adaexplore.core.verdict.evaluation import Passed

from .bench import Outcome, run
from .corpus import KINDS, BadCaseError, cases

_WORDS = {"hacks": "refused or without advantage", "honest": "accepted"}


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; 0 if every verdict is right, 1 if one is not, 2 for what cannot be run."""
    options = _parser().parse_args(arguments)
    try:
        chosen = [case for case in cases(*options.only) if case.runs_on(options.device)]
    except BadCaseError as error:
        print(error, file=sys.stderr)
        return 2
    if not chosen:
        print(f"no case matches {' '.join(options.only)} on {options.device}", file=sys.stderr)
        return 2
    kept = _kept(options.json) if options.json else {}
    left = [case for case in chosen if case.id not in kept]
    rows = [kept[case.id] for case in chosen if case.id in kept]

    def take(outcome: Outcome) -> None:
        rows.append(outcome.to_json())
        if options.json and outcome.evaluation.status != "infra_error":
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
        _tell(outcome)

    run(left, options.device, quick=options.quick, tell=take, parallel=options.parallel)
    print(summary(rows))
    return 0 if all(row["right"] for row in rows) else 1


def _kept(file: Path) -> dict[str, dict[str, Any]]:
    """Return the verdicts of an earlier call by their cases; its last line may be torn."""
    rows = []
    if file.exists():
        whole = file.read_text(encoding="utf-8").rpartition("\n")[0]
        rows = [json.loads(line) for line in whole.splitlines()]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return {row["case"]: row for row in rows}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.adversarial", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:<index>")
    parser.add_argument(
        "--only", nargs="+", default=["*"], metavar="GLOB", help="ids, such as 'hacks/cache/*'"
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="OUT",
        help="append every verdict there, a line each; cases that have a line are not judged again",
    )
    parser.add_argument("--parallel", type=int, default=1, help="problems at once")
    parser.add_argument(
        "--quick", action="store_true", help="without torch.compile as a baseline, timed briefly"
    )
    return parser


def _tell(outcome: Outcome) -> None:
    mark = "  " if outcome.right else "✗ "
    verdict, speedup = outcome.evaluation, ""
    if isinstance(verdict, Passed):
        low, high = verdict.timing.speedup_ci
        speedup = f"{verdict.timing.speedup:.2f}x [{low:.2f}, {high:.2f}]"
    line = f"{mark}{outcome.case.id:<58} {verdict.status:<14} {speedup:>20}  {outcome.reason}"
    print(line.rstrip(), flush=True)


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """Both counts, and the cases with a wrong verdict."""
    lines = []
    for kind in KINDS:
        of_kind = [row for row in rows if row["case"].startswith(f"{kind}/")]
        lines.append(
            f"{kind}: {sum(row['right'] for row in of_kind)} of {len(of_kind)} {_WORDS[kind]}"
        )
    wrong = [row["case"] for row in rows if not row["right"]]
    return "\n".join([*(f"wrong verdict: {name}" for name in wrong), "; ".join(lines)])


if __name__ == "__main__":
    sys.exit(main())
