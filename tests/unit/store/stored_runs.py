"""Deterministic run record and steps for tests of the store."""

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.store import RunRecord


def sample_run() -> RunRecord:
    return RunRecord(
        problem=Problem("softmax", "class Model: ...", "cpp", "cpu"),
        config=Config(c=0.25, reward="published", seed=7, steps=20),
        proposers=("compiler",),
        environment=Environment(torch="2.13.0"),
        command="adaexplore explore softmax.py --seed 7",
        created_at=1.5e9,
    )


def sample_node(node_id: int, filler: str = "") -> Node:
    """Return step `node_id` of one fixed run; `filler` sets its size on disk."""
    candidate = Candidate(f"class ModelNew: number = {node_id % 5}{filler}", "cpp")
    proposal = Proposal(candidate, "compiler", f"step {node_id}", {"knob": node_id})
    if node_id % 3 == 0:
        return Node(node_id, node_id // 2, "large", proposal, Failed("wrong_output", "off by one"))
    timing = Timing(
        time_us=10.0 / node_id,
        time_ci_us=(9.0 / node_id, 11.0 / node_id),
        baselines_us={"eager": 12.0, "compile": 11.0},
        speedup=1.1 * node_id,
        speedup_ci=(node_id, 1.2 * node_id),
        speedup_eager=1.2 * node_id,
        samples=100,
    )
    return Node(node_id, node_id // 2, "large", proposal, Passed("fp32", 1e-7, timing), 1.5e9, 0.25)
