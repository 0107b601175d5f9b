"""Plans in replies, and the states of their items."""

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.proposer import Context
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.propose.model.plans import progress, read_plan

ITEMS = ("fusion: the relu.", "tiling: 64 by 64.")


@pytest.mark.parametrize(
    "reply",
    [
        "One kernel.\n\n1. fusion: the relu.\n2. tiling: 64 by 64.\n",
        "1) fusion: the relu.\n\n2) tiling:\n   64 by 64.",
        "## 1. fusion:\nthe relu.\n## 2. tiling:\n- 64 by 64.".replace("- ", ""),
        "- One kernel does it.\n\n 1. fusion: the relu.\n 2. tiling: 64 by 64.",
        "- fusion: the relu.\n- tiling: 64\n  by 64.",
        "**1.** fusion: the relu.\n**2.** tiling: 64 by 64.",
    ],
)
def test_the_items_of_a_list_in_their_order(reply):
    assert read_plan(reply, 5) == ITEMS


def test_the_first_items_of_a_long_list():
    assert read_plan("".join(f"{i}. item {i}\n" for i in range(1, 13)), 3) == (
        "item 1",
        "item 2",
        "item 3",
    )


def test_a_reply_without_a_list_is_one_item():
    assert read_plan("Fuse the relu.\nThen stop.", 5) == ("Fuse the relu. Then stop.",)


class Steps:
    """Steps of a run; the first has a plan of three items."""

    PLAN = ("a", "b", "c")

    def __init__(self, speedup: float | None = 1.0, plan: tuple[str, ...] = PLAN) -> None:
        self.nodes: list[Node] = []
        self.add(speedup, 0, "large", plan=plan)

    def add(
        self,
        speedup: float | None,
        parent: int,
        kind: str = "small",
        status: str = "wrong_output",
        plan: tuple[str, ...] = (),
    ) -> None:
        timing = Timing(1.0, (1.0, 1.0), {"eager": 1.0}, speedup, (1.0, 1.0), 1.0, 7)
        evaluation = Passed("fp32", 0.0, timing) if speedup else Failed(status, "wrong")
        number = len(self.nodes) + 1
        proposal = Proposal(Candidate(f"{number}", "cpp"), "x", "", {"plan": list(plan)})
        self.nodes.append(Node(number, parent, kind, proposal, evaluation))

    def at(self, current: int, tries: int = 2) -> list[tuple[str, str, list[int]]]:
        problem = Problem("p", "class Model: ...", "cpp", "cpu")
        window = (self.nodes[current - 1],)
        context = Context(problem, "small", 1, window=window, history=self.nodes)
        items = progress(context, tries)
        assert [item.number for item in items] == list(range(1, len(items) + 1))
        return [(i.text, i.state, [node.id for node in i.attempts]) for i in items]


def test_the_first_item_comes_first():
    assert Steps().at(1) == [("a", "now", []), ("b", "later", []), ("c", "later", [])]


def test_an_item_whose_kernel_was_kept_is_done():
    steps = Steps()
    steps.add(1.1, 1)
    assert steps.at(2) == [("a", "done", [2]), ("b", "now", []), ("c", "later", [])]


def test_a_failed_item_is_tried_again_and_then_skipped():
    steps = Steps()
    steps.add(None, 1)
    assert steps.at(1) == [("a", "now", [2]), ("b", "later", []), ("c", "later", [])]
    steps.add(0.5, 1)
    assert steps.at(1) == [("a", "skipped", [2, 3]), ("b", "now", []), ("c", "later", [])]
    steps.add(None, 1)
    steps.add(1.1, 1)
    expected = [("a", "skipped", [2, 3]), ("b", "done", [4, 5]), ("c", "now", [])]
    assert steps.at(5) == expected


def test_a_plan_without_items_left_is_over():
    steps = Steps()
    for parent in (1, 2, 3):
        assert steps.at(parent)
        steps.add(1.0 + parent, parent)
    assert steps.at(4) == []
    assert Steps(plan=()).at(1) == []


def test_mending_the_first_version_is_no_item():
    steps = Steps(None)
    steps.add(None, 1)
    steps.add(1.0, 1)
    assert steps.at(3) == [("a", "now", []), ("b", "later", []), ("c", "later", [])]
    steps.add(1.1, 3)
    assert steps.at(4)[:2] == [("a", "done", [4]), ("b", "now", [])]


def test_steps_that_were_not_judged_and_variants_are_no_attempts():
    steps = Steps()
    steps.add(None, 1, status="infra_error")
    steps.add(None, 1, "tune")
    steps.add(None, 1, "large")
    assert steps.at(1) == Steps().at(1)


def test_other_plans_are_not_looked_at():
    steps = Steps()
    steps.add(1.0, 0, "large", plan=("d", "e"))
    steps.add(1.1, 2)
    steps.add(None, 2)
    assert steps.at(1) == Steps().at(1)
    assert steps.at(3) == [("d", "done", [3]), ("e", "now", [])]
