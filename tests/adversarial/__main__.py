"""`python -m tests.adversarial`: judges both corpora and prints how many verdicts are right."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from adaexplore.core.evaluation import Passed

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
    outcomes = run(
        chosen, options.device, quick=options.quick, tell=_tell, parallel=options.parallel
    )
    if options.json:
        table = [outcome.to_json() for outcome in outcomes]
        options.json.write_text(json.dumps(table, indent=1), encoding="utf-8")
    print(summary(outcomes))
    return 0 if all(outcome.right for outcome in outcomes) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.adversarial", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:<index>")
    parser.add_argument(
        "--only", nargs="+", default=["*"], metavar="GLOB", help="ids, such as 'hacks/cache/*'"
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every verdict there")
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


def summary(outcomes: list[Outcome]) -> str:
    """Both counts, and the cases with a wrong verdict."""
    lines = []
    for kind in KINDS:
        of_kind = [outcome for outcome in outcomes if outcome.case.kind == kind]
        right = sum(outcome.right for outcome in of_kind)
        lines.append(f"{kind}: {right} of {len(of_kind)} {_WORDS[kind]}")
    wrong = [outcome.case.id for outcome in outcomes if not outcome.right]
    return "\n".join([*(f"wrong verdict: {name}" for name in wrong), "; ".join(lines)])


if __name__ == "__main__":
    sys.exit(main())
