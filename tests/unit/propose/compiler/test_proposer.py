"""Which choices the proposer sends, by a job that answers from the request."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import references

from adaexplore.core.errors import BadInputError
from adaexplore.core.node import Node, StepKind
from adaexplore.core.problem import Checks, Precision, Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.proposer import Context
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.propose.compiler.families import families, knobs
from adaexplore.propose.compiler.identity import fingerprint
from adaexplore.propose.compiler.proposer import JOB, CompilerProposer

FEATURES = ["exp", "gemm", "many", "matmul", "reduction", "weights"]


class Job:
    """Gives each choice of knobs a source of its own; some families do not apply."""

    def __init__(self, language: str = "cpp") -> None:
        self.requests: list[dict[str, Any]] = []
        self.language = language

    def __call__(self, entry: str, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        assert entry == JOB
        self.requests.append(request)
        passed_over: dict[str, str] = {}
        for attempt in request["tries"]:
            if not set(attempt["needs"]) <= set(FEATURES):
                passed_over[attempt["family"]] = "does not apply"
                continue
            source = f"knobs = {dict(sorted(attempt['knobs'].items()))}\n"
            if self.language == "triton":
                source += "launch_0 = _launcher(k, grid=g, blocks={'XBLOCK': 64}, num_warps=4)\n"
            if fingerprint(source) in request["known"]:
                passed_over[attempt["family"]] = "known"
                continue
            return {
                "source": source,
                "family": attempt["family"],
                "knobs": attempt["knobs"],
                "note": f"{attempt['family']}: something",
                "features": FEATURES,
                "passed_over": passed_over,
            }
        return {"failure": "nothing to propose", "passed_over": passed_over}


def test_a_language_that_inductor_does_not_write_is_refused():
    problem = Problem("example", "", "cuda", "cuda:0")
    context = Context(problem=problem, step_kind="large", seed=0)
    with pytest.raises(BadInputError, match="the compiler writes cpp and triton, not cuda"):
        next(CompilerProposer(Job(), timeout_s=60.0).begin(context))


def proposed(proposer: CompilerProposer, context: Context) -> Proposal:
    """What a proposer that asks nobody answers."""
    with pytest.raises(StopIteration) as ended:
        next(proposer.begin(context))
    return ended.value.value


def problem(device: str = "cpu", precision: Precision = "fp32") -> Problem:
    language = "triton" if device.startswith("cuda") else "cpp"
    return Problem("example", references.TWO_LAYERS, language, device, checks=Checks(precision))


def node(number: int, proposal: Proposal, speedup: float, kind: StepKind = "large") -> Node:
    if proposal.failure:
        return Node(number, 0, kind, proposal, Failed("rejected", proposal.failure))
    timing = Timing(100.0, (99.0, 101.0), {"eager": 120.0}, speedup, (1.0, 2.0), speedup, 10)
    return Node(number, 0, kind, proposal, Passed("fp32", 1e-7, timing))


def steps(proposer: CompilerProposer, count: int, problem: Problem) -> list[Node]:
    """A run of large steps."""
    history: list[Node] = []
    for number in range(1, count + 1):
        context = Context(problem, "large", seed=number, history=tuple(history))
        history.append(node(number, proposed(proposer, context), 1.0 + number / 10))
    return history


@pytest.mark.parametrize(
    ("device", "precision"),
    [("cpu", "fp32"), ("cpu", "half"), ("cuda:0", "fp32"), ("cuda:0", "tf32"), ("cuda:0", "half")],
)
def test_large_steps_walk_through_the_families_then_combine(
    device: str, precision: Precision
) -> None:
    where = problem(device, precision)
    usable = {f.name for f in families(device, precision) if f.needs <= set(FEATURES)}
    history = steps(CompilerProposer(Job(), 60.0), len(usable) + 4, where)
    names = [n.proposal.settings["family"] for n in history]
    assert set(names[: len(usable)]) == usable
    assert set(names[len(usable) :]) == {"combination"}
    assert len({n.candidate.digest for n in history}) == len(history)
    assert all(n.proposal.origin == "compiler" for n in history)


def test_the_most_promising_families_come_first() -> None:
    names = [f.name for f in families("cpu", "fp32")]
    first = steps(CompilerProposer(Job(), 60.0), 3, problem())
    assert {n.proposal.settings["family"] for n in first} <= set(names[:5])


def test_small_steps_turn_one_knob() -> None:
    proposer = CompilerProposer(Job(), 60.0)
    history = steps(proposer, 2, problem())
    parent = history[0]
    for seed in range(20):
        context = Context(problem(), "small", seed, window=(parent,), history=tuple(history))
        proposal = proposed(proposer, context)
        assert not proposal.failure
        before, after = parent.proposal.settings["knobs"], proposal.settings["knobs"]
        changed = [key for key in after if before.get(key) != after[key]]
        assert len(changed) == 1
        assert after[changed[0]] in knobs("cpu", "fp32")[changed[0]].values
        assert proposal.settings["family"] == parent.proposal.settings["family"]


def test_small_steps_emulate_fp32_products_in_parts_of_tf32_and_of_bf16() -> None:
    proposer, where = CompilerProposer(Job("triton"), 60.0), problem("cuda:0")
    history = steps(proposer, 1, where)
    contexts = (
        Context(where, "small", seed, window=history, history=history) for seed in range(400)
    )
    chosen = [proposed(proposer, each).settings["knobs"] for each in contexts]
    assert {each.get("dot_precision", "") for each in chosen} == {"", "tf32x3", "bf16x3"}


def test_small_steps_on_a_gpu_also_change_launches() -> None:
    proposer = CompilerProposer(Job("triton"), 60.0)
    where = problem("cuda:0")
    history = steps(proposer, 1, where)
    proposals = [
        proposed(proposer, Context(where, "small", seed, window=history, history=history))
        for seed in range(20)
    ]
    patched = [p for p in proposals if p.settings["patch"]]
    assert 0 < len(patched) < len(proposals)
    for proposal in patched:
        assert proposal.note == proposal.settings["patch"]
        assert proposal.settings["knobs"] == history[0].proposal.settings["knobs"]
        assert proposal.candidate.source != history[0].candidate.source


def test_same_seed_and_history_same_proposal() -> None:
    proposer = CompilerProposer(Job("triton"), 60.0)
    history = steps(proposer, 20, problem("cuda:0"))
    for kind in ("large", "small"):
        for seed in range(5):
            context = Context(
                problem("cuda:0"),
                kind,
                seed,
                window=history[-1:],
                pool=history[:3],
                history=history,
            )
            assert proposed(proposer, context) == proposed(proposer, context)


def test_requests_are_bounded_and_name_what_is_known() -> None:
    job = Job()
    history = steps(CompilerProposer(job, 60.0), 30, problem())
    assert all(0 < len(request["tries"]) <= 6 for request in job.requests)
    assert len(job.requests[-1]["known"]) == len(history) - 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TimeoutError(), "the compiler took more than 7 s"),
        (RuntimeError("killed by signal 9"), "the compiler's process died: killed by signal 9"),
    ],
)
def test_a_lost_job_is_a_failure_and_its_families_are_not_tried_again(
    error: Exception, reason: str
) -> None:
    def broken(entry: str, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        raise error

    proposal = proposed(CompilerProposer(broken, 7.0), Context(problem(), "large", 1))
    assert proposal.failure == reason
    assert proposal.candidate.source == ""
    history = (node(1, proposal, 0.0),)
    job = Job()
    proposed(CompilerProposer(job, 7.0), Context(problem(), "large", 2, history=history))
    lost = proposal.settings["family"]
    assert lost not in [attempt["family"] for attempt in job.requests[0]["tries"]]


def test_a_small_step_from_another_proposers_kernel() -> None:
    foreign = Proposal(
        steps(CompilerProposer(Job(), 60.0), 1, problem())[0].candidate, "llm", "idea"
    )
    parent = node(1, foreign, 2.0)
    proposal = proposed(
        CompilerProposer(Job(), 60.0),
        Context(problem(), "small", 3, window=(parent,), history=(parent,)),
    )
    assert not proposal.failure


def test_imports_no_torch() -> None:
    code = (
        "import sys, adaexplore.propose.compiler.proposer\n"
        "assert not {'torch', 'triton'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_steps_beside_each_other_try_different_families():
    firsts = []
    for in_flight in range(4):
        job = Job()
        context = Context(problem(), "large", seed=7, in_flight=in_flight)
        proposed(CompilerProposer(job, timeout_s=60.0), context)
        firsts.append(job.requests[0]["tries"][0]["family"])
    assert len(set(firsts[1:])) == 3
    in_order = [family.name for family in families("cpu", "fp32")]
    assert firsts[1:] == in_order[1:4]
