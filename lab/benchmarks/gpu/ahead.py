"""Writes the first prompts of a campaign before a GPU has prepared its problems.

    python lab/benchmarks/gpu/ahead.py ORDER.toml RECORDED -o FOLDER

ORDER is a campaign's file, RECORDED a run on the GPU that the campaign will use. FOLDER/asks/NAME
has the prompts that wait at once for a problem. They are the campaign's own, with the environment
and the measured rates of RECORDED; the work of a reference is counted on tensors without data. The
times of its baselines, its labels and PyTorch's own error are unknown and left out.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from adaexplore.core import BadInputError, Config, Problem
from adaexplore.evaluate import counted_facts
from adaexplore.problems import load_problem
from adaexplore.run import campaign_order, make_plan, settled, with_memory, write_prompts
from adaexplore.store import RunRecord, make_run, open_run, read_run


def main() -> None:
    """Write the prompts, and a line for each problem that has none."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("order", type=Path)
    parser.add_argument("recorded", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    with read_run(options.recorded) as recorded:
        like = recorded.store.run()
    order = campaign_order([options.order], Config())
    options.output = options.output.resolve()
    for name, text in order.files.items():
        (options.output / name).parent.mkdir(parents=True, exist_ok=True)
        (options.output / name).write_text(text, encoding="utf-8")
    for entry in order.entries:
        folder = options.output / entry.name
        try:
            if not folder.exists():
                problem = _problem(options.output / entry.path, entry.config, like)
                make_run(folder, record_ahead(problem, entry.config, like))
            with open_run(folder) as run:
                missing = order.config.turn_steps - len(run.store.asks())
                written = write_prompts(run, missing, options.output / "asks" / entry.name)
            print(f"{entry.name}: {len(written)} prompts", flush=True)
        except BadInputError as error:
            print(f"{entry.name}: {error}", flush=True)


def record_ahead(problem: Problem, config: Config, like: RunRecord) -> RunRecord:
    """Return the record of a run on the GPU of another, whose reference nobody has run."""
    plan, config = with_memory(make_plan(config), settled(config, problem), problem)
    return RunRecord(
        problem=problem,
        config=config,
        proposers=plan.proposers,
        environment=like.environment,
        command="",
        created_at=time.time(),
        reference=counted_facts(problem, like.reference),
        plan=plan.to_json(),
    )


def _problem(path: Path, config: Config, like: RunRecord) -> Problem:
    problem = load_problem(  # a problem's file may be run to read it: here
        path,
        device="cpu",
        language=config.language or like.problem.language,
        checks=config.checks,
        seed=config.problem_seed,
        mode=config.mode,
    )
    return replace(problem, device=like.problem.device)


if __name__ == "__main__":
    main()
