"""The commands that read runs, on runs and released kernels of the published search."""

import dataclasses
import json

import pytest
from answering import kept
from test_search import passed
from test_search_commands import Renaming
from test_starts import node, record

from adaexplore.core.node import START
from adaexplore.core.problem import Problem
from adaexplore.run.session import Session
from adaexplore.store import create_run
from published_files import REFERENCE, kernel, right, write_released, write_tree

MENDED = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(9):
            out = x.clamp(min=0) + 1
        return out
"""


@pytest.fixture
def theirs(tmp_path):
    return write_tree(tmp_path / "outputs" / "2_18", "model_name: gpt-tiny\n")


class TestShown:
    def test_a_tree_with_what_was_reported_and_no_star(self, adaexplore, theirs):
        shown = adaexplore("show", theirs)
        assert shown.code == 0, shown
        assert "★" not in shown.out
        assert "reported 2.50× over eager (1.20 ms) on NVIDIA Imaginary; not judged" in shown.out
        claim = (
            "No speedup is claimed: others report 2 of 5 steps correct, and none was judged here"
        )
        assert claim in shown.out
        assert "The best, node 4, is reported at 2.50× over eager." in shown.out
        assert "published judge" not in shown.out

    def test_a_report(self, adaexplore, theirs, tmp_path):
        page = tmp_path / "theirs.html"
        assert adaexplore("report", theirs, "-o", page).code == 0
        text = page.read_text()
        assert "No speedup is claimed: others report 2 of 5 steps correct" in text
        assert "<option>reported</option>" in text

    def test_a_line_for_each_run_of_a_folder(self, adaexplore, theirs):
        shown = adaexplore("show", theirs.parent)
        assert "1 reported run: 2 of 5 steps correct there" in shown.out
        assert "2.50×" in shown.out

    def test_released_kernels(self, adaexplore, tmp_path):
        level = write_released(tmp_path, {18: right(3.5), 7: right(1.25)})
        assert "reported 3.50× over eager" in adaexplore("show", level / "18.py").out
        listed = adaexplore("show", level)
        assert "2 reported runs: 2 of 2 steps correct there" in listed.out
        assert listed.out.index("7.py") < listed.out.index("18.py")


class TestCompared:
    def test_alone(self, adaexplore, theirs, tmp_path):
        level = write_released(tmp_path, {18: right(3.5)})
        json_file, page = tmp_path / "c.json", tmp_path / "c.html"
        found = adaexplore("compare", theirs, level, "--json", json_file, "--html", page)
        assert found.code == 0, found
        assert "nothing of them was judged here" in found.out
        reported = json.loads(json_file.read_text())["reported"]
        assert [run["best"] for run in reported] == [{"5": 2.5}, {"1": 3.5}]
        assert "Reported by others" in page.read_text()

    def test_beside_a_run_of_the_same_problem_and_in_no_mean(self, adaexplore, theirs, tmp_path):
        for name, source, speedup in (("mine", REFERENCE, 1.75), ("other", "", 9.0)):
            problem = Problem(name, source, "cpp", "cpu")
            run = dataclasses.replace(record(starts=(), steps=1), problem=problem)
            with create_run(tmp_path / name, run) as directory:
                directory.store.record(node(1, "fake", passed(speedup)))
        json_file = tmp_path / "c.json"
        words = [tmp_path / "mine", tmp_path / "other", theirs]
        found = adaexplore("compare", *words, "--json", json_file)
        assert found.code == 0, found
        assert "measured here" in found.out
        data = json.loads(json_file.read_text())
        assert [run["measured"] for run in data["reported"]] == [1.75]
        assert str(theirs) not in json.dumps(data["groups"])


class TestUsed:
    @pytest.mark.slow
    def test_their_tree_is_where_a_search_begins(self, explore, theirs, monkeypatch):
        monkeypatch.setattr(Session, "compiler", lambda *_: Renaming())
        (theirs / "step_4.py").write_text(MENDED)
        result, path = explore("--start-from", theirs, "--steps", 1, "--set", "confirm=false")
        assert result.code == 0, result
        nodes = kept(path)[1]
        assert [n.proposal.origin for n in nodes] == [START] * 5 + ["compiler"]
        shape = {n.candidate.source: n.parent_id for n in nodes}
        first = next(n.id for n in nodes if n.candidate.source == kernel(1))
        assert shape[kernel(2)] == shape[kernel(3)] == shape[MENDED] == first
        judged = {n.candidate.source: n.evaluation.status for n in nodes}
        assert judged[MENDED] == "passed"  # they said so, and so it is
        assert judged[kernel(1)] != "reported"
        assert "start: 2_18, step 4" in result.out

    @pytest.mark.slow
    def test_their_failures_make_cases(self, adaexplore, theirs, tmp_path):
        words = ["adapt", theirs.parent, "-o", tmp_path / "memory.toml", "--device", "cpu"]
        learned = adaexplore(*words, "--target", "sm_90", "--work", tmp_path / "work")
        assert learned.code == 0, learned
        assert "3 failures of candidates" in learned.out
        assert list((tmp_path / "work").rglob("*.1.md"))

    @pytest.mark.parametrize("command", [("resume",), ("tune",), ("export", "-o", "x.json.xz")])
    def test_what_writes_says_how_to_begin_one_from_it(self, adaexplore, theirs, command):
        name, *words = command
        refused = adaexplore(name, theirs, *words)
        assert f"adaexplore explore PROBLEM --start-from {theirs}" in refused.complaint
