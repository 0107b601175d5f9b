from adaexplore.core.candidate import Candidate
from adaexplore.core.evaluation import Failed
from adaexplore.core.node import Node
from adaexplore.core.proposal import Proposal
from adaexplore.search.failure_summary import failure_statistics


def failed(number, status, reason):
    proposal = Proposal(Candidate(str(number), "triton"), "x", "")
    return Node(number, 0, "large", proposal, Failed(status, reason))


def test_repeated_failures_are_listed_with_their_latest_reason():
    nodes = [
        failed(1, "compile_error", "no such name at line 12"),
        failed(2, "wrong_output", "off by 3"),
        failed(3, "compile_error", "no such name at line 99"),
        failed(4, "timeout", "took 180 s"),
        failed(5, "infra_error", "gone"),
        failed(6, "infra_error", "gone"),
    ]
    assert failure_statistics(nodes) == [
        "2 of the 6 kernels so far: compile_error: no such name at line 99"
    ]
    assert failure_statistics([]) == []
