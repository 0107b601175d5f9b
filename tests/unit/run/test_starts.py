"""The kernels that a search starts from: where they are found, and what becomes of them."""

import dataclasses
import os

import pytest
from test_search import FACTS, FakeEvaluator, FakeProposer, passed

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import START, Node, planned_steps
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.run.proposers import Plan, chooser
from adaexplore.run.search import Search
from adaexplore.run.starts import Start, generations, read_starts, started, starts_left
from adaexplore.search.headroom import stop_reason
from adaexplore.store import RunRecord, create_run, memory_store

PROBLEM = Problem("relu", "", "cpp", "cpu")
KERNEL = "class ModelNew: number = {}\n"


def kernel(number) -> str:
    return KERNEL.format(number)


TREE = (
    Start(kernel(1), "a"),
    Start(kernel(2), "b", parent=0, step_kind="small"),
    Start(kernel(3), "c", parent=1, step_kind="large"),
    Start(kernel(4), "d"),
)


def record(starts=TREE, steps=3, **config) -> RunRecord:
    config = Config(steps=steps, start_from=("/somewhere",), **config)
    plan = Plan(("fake",), starts=tuple(starts)).to_json()
    return RunRecord(PROBLEM, config, ("fake",), Environment(), "", 0.0, FACTS, plan)


def search(store, tmp_path, evaluator=None, **options) -> Search:
    options.setdefault("sleep", lambda _: None)
    evaluator = evaluator or FakeEvaluator()
    return Search(store, {"fake": FakeProposer()}, evaluator, tmp_path / "best.py", **options)


class TestSearch:
    @pytest.mark.parametrize("parallel", [1, 3])
    def test_their_tree_is_judged_before_the_first_step(self, tmp_path, parallel):
        store, evaluator = memory_store(record()), FakeEvaluator()
        list(search(store, tmp_path, evaluator, parallel=parallel).run())
        nodes = store.nodes()
        first, rest = nodes[:4], nodes[4:]
        assert {node.proposal.origin for node in first} == {START}
        assert START not in {node.proposal.origin for node in rest}
        assert len(rest) == len(planned_steps(nodes)) == 3
        by_number = started(nodes)
        assert [by_number[i].candidate.source for i in range(4)] == [
            kernel(i) for i in (1, 2, 3, 4)
        ]
        assert [by_number[i].step_kind for i in range(4)] == ["large", "small", "large", "large"]
        parents = [by_number[i].parent_id for i in range(4)]
        assert parents == [0, by_number[0].id, by_number[1].id, 0]
        assert {kernel(i) for i in (1, 2, 3, 4)} <= set(evaluator.evaluated)

    def test_a_search_that_was_stopped_among_them_goes_on_there(self, tmp_path):
        store = memory_store(record())
        events = search(store, tmp_path).run()
        while len(store.nodes()) < 2:
            next(events)
        events.close()
        assert starts_left(store)
        evaluator = FakeEvaluator()
        list(search(store, tmp_path, evaluator).run())
        assert [node.proposal.settings.get("start") for node in store.nodes()[:4]].count(None) == 0
        assert not starts_left(store)
        assert kernel(1) not in evaluator.evaluated[:2]
        list(search(store, tmp_path).run())
        assert sum(node.proposal.origin == START for node in store.nodes()) == 4
        assert len(planned_steps(store.nodes())) == 3

    def test_no_further_one_begins_once_the_budget_is_spent(self, tmp_path):
        store = memory_store(record())
        list(search(store, tmp_path, spent=lambda: "over" if store.nodes() else None).run())
        assert len(store.nodes()) == 1

    def test_the_best_of_them_is_the_best_of_the_search(self, tmp_path):
        class OnlyStarts(FakeEvaluator):
            def evaluate(self, candidate, parent=None, *, again=False):
                is_best = candidate.source == kernel(3)
                return passed(3.0) if is_best else Failed("wrong_output", "no")

        store = memory_store(record(starts=TREE[:3]))
        list(search(store, tmp_path, OnlyStarts()).run())
        assert (tmp_path / "best.py").read_text().endswith(kernel(3))

    def test_the_first_steps_of_the_compiler_come_after_them(self, tmp_path):
        store = memory_store(record(compiler_seeds=1))
        plan = dataclasses.replace(Plan.of(store.run()))
        asked = []
        choose = chooser(plan, store.run().config, store)

        def note(ledger):
            asked.append(choose(ledger))
            return "fake"

        list(search(store, tmp_path, choose=note).run())
        assert asked == ["compiler", "fake", "fake"]


def node(number, origin, evaluation) -> Node:
    return Node(
        number, 0, "large", Proposal(Candidate(kernel(number), "cpp"), origin, ""), evaluation
    )


def test_a_search_is_not_flat_because_its_starting_kernels_are():
    config = Config(stop_flat=2)
    starts = [node(i, START, passed(2.0)) for i in (1, 2, 3)]
    step = node(4, "fake", passed(1.5))
    assert not stop_reason(starts, FACTS, config)
    assert not stop_reason([*starts, step], FACTS, config)
    assert stop_reason([*starts, step, node(5, "fake", passed(1.5))], FACTS, config)


def test_a_pipe_is_no_kernel(tmp_path):
    os.mkfifo(tmp_path / "a.py")
    with pytest.raises(BadInputError, match=r"a\.py: is no regular file; give a Python file"):
        read_starts([str(tmp_path)], tmp_path / "problem.py")


def test_generations_have_parents_before_children():
    assert generations(TREE) == [[0, 3], [1], [2]]
    assert generations(()) == []


class TestPlaces:
    @pytest.fixture
    def file(self, tmp_path):
        def file(name, text):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return str(path)

        return file

    @pytest.fixture
    def problem(self, tmp_path):
        return tmp_path / "KernelBench" / "level2" / "18_Matmul_Sum.py"

    def sources(self, places, problem):
        return [start.source for start in read_starts(places, problem)]

    def test_files_in_their_order(self, file, problem):
        places = [file("b.py", kernel(2)), file("a.py", kernel(1))]
        assert self.sources(places, problem) == [kernel(2), kernel(1)]

    @pytest.mark.parametrize("folder", ["kernels", "kernels/level2"])
    def test_released_kernels_of_the_problem_alone(self, file, problem, tmp_path, folder):
        file("kernels/level2/18.py", kernel(18))
        file("kernels/level2/1.py", kernel(1))
        file("kernels/level3/18.py", kernel(318))
        assert self.sources([str(tmp_path / folder)], problem) == [kernel(18)]

    @pytest.mark.parametrize("folder", ["level3", "level2/more"])
    def test_released_kernels_of_other_problems_are_refused(self, file, problem, tmp_path, folder):
        file(f"{folder}/17.py", kernel(1))
        if folder == "level3":
            file(f"{folder}/18.py", kernel(318))
        with pytest.raises(BadInputError, match="none for 18_Matmul_Sum; name one of its files"):
            read_starts([str(tmp_path / folder)], problem)

    def test_every_kernel_of_any_other_folder(self, file, problem, tmp_path):
        file("mine/b.py", kernel(2))
        file("mine/a.py", kernel(1))
        file("mine/notes.py", "x = 1\n")
        assert self.sources([str(tmp_path / "mine")], problem) == [kernel(1), kernel(2)]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("class ModelNew(:\n", "a.py: The module does not parse"),
            ("class Model: pass\n", "a.py: The module does not define ModelNew at its top level"),
            ("", "a.py: The module does not define ModelNew"),
        ],
    )
    def test_a_file_without_a_kernel_is_refused_in_one_line(self, file, problem, text, said):
        with pytest.raises(BadInputError) as caught:
            read_starts([file("a.py", text)], problem)
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_a_place_that_is_not_there_or_empty(self, problem, tmp_path):
        with pytest.raises(BadInputError, match="nowhere: no such file or folder"):
            read_starts([str(tmp_path / "nowhere")], problem)
        (tmp_path / "empty").mkdir()
        with pytest.raises(BadInputError, match="empty: there is no kernel in it"):
            read_starts([str(tmp_path / "empty")], problem)

    def test_a_run_with_its_tree_and_without_the_steps_that_have_no_kernel(self, problem, tmp_path):
        path = tmp_path / "run"
        steps = [(0, "large", kernel(1)), (1, "small", "no kernel"), (2, "small", kernel(2))]
        steps += [(0, "large", ""), (4, "small", kernel(3)), (3, "tune", kernel(4))]
        with create_run(path, record(starts=())) as run:
            for i, (parent, kind, source) in enumerate(steps, 1):
                proposal = Proposal(Candidate(source, "cpp"), "fake", "")
                run.store.record(Node(i, parent, kind, proposal, Failed("wrong_output", "no")))
        other = tmp_path / "other.py"
        other.write_text(kernel(9))
        starts = read_starts([str(other), str(path)], problem)
        shape = [(start.source, start.parent, start.step_kind) for start in starts]
        assert shape == [
            (kernel(9), None, "large"),
            (kernel(1), None, "large"),
            (kernel(2), 1, "small"),
            (kernel(3), None, "large"),
            (kernel(4), 2, "small"),
        ]
