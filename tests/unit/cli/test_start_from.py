"""Searches that start from kernels: files, folders and runs, by the command line."""

import pytest
from answering import kept
from test_search_commands import Renaming

from adaexplore.core.node import START
from adaexplore.run.session import Session

QUIET = ("--set", "confirm=false")


@pytest.fixture
def compiler(monkeypatch):
    monkeypatch.setattr(Session, "compiler", lambda *_: Renaming())


@pytest.mark.slow
def test_a_kernel_and_then_the_run_that_it_began(explore, adaexplore, candidate, compiler):
    result, path = explore("--start-from", candidate, "--steps", 1, *QUIET)
    assert result.code == 0, result
    assert "start: candidate.py" in result.out
    assert "1 of 1 steps after 1 starting kernel" in result.out
    record, nodes, _ = kept(path)
    assert [(n.proposal.origin, n.evaluation.status) for n in nodes] == [
        (START, "passed"),
        ("compiler", "passed"),
    ]
    assert f"--start-from {candidate}" in record.command

    again, second = explore("--start-from", path, "--steps", 1, *QUIET)
    assert again.code == 0, again
    sources = [node.candidate.source for node in kept(second)[1]]
    assert sources[:2] == [node.candidate.source for node in nodes]
    assert len(sources) == 3
    listed = adaexplore("compare", path, second)
    assert listed.code == 0, listed
    assert "start_from=1 kernel" in listed.out
    assert "start_from=2 kernels" in listed.out


@pytest.mark.slow
def test_where_prompts_are_answered_they_are_judged_before_the_first(
    explore, adaexplore, candidate, problem, tmp_path
):
    words = ["--proposer", "manual", "--steps", 1, "--start-from", candidate]
    made, path = explore(*words)
    assert made.code == 0, made
    assert [node.proposal.origin for node in kept(path)[1]] == [START]
    asked = adaexplore("ask", path, "-n", 1, "-o", tmp_path / "asks")
    assert asked.code == 0, asked
    too_many = adaexplore("ask", path, "-n", 1, "-o", tmp_path / "asks")
    assert "of 1 planned steps 0 are made and 1 are asked for" in too_many.complaint

    folder = tmp_path / "campaign"
    order = adaexplore("campaign", problem, "--device", "cpu", *words, "--run", folder)
    assert order.code == 0, order
    assert [node.proposal.origin for node in kept(folder / "problem")[1]] == [START]
    assert list((folder / "asks").rglob("*.1.md"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f(:\n", "The module does not parse"),
        ("x = 1\n", "The module does not define ModelNew"),
    ],
)
def test_no_run_begins_with_a_file_that_is_no_kernel(explore, file, text, said):
    result, path = explore("--start-from", file("kernel.py", text))
    assert "kernel.py: " in result.complaint
    assert said in result.complaint
    assert not path.exists()


def test_a_campaign_starts_each_problem_from_its_own(adaexplore, file, problem, tmp_path):
    text = '[[problem]]\nfile = "problem.py"\nstart_from = "kernels"\n'
    order = file("order.toml", text)
    words = ["campaign", order, "--device", "cpu", "--run", tmp_path / "campaign"]
    refused = adaexplore(*words)
    assert f"--start-from {tmp_path}/kernels: no such file or folder" in refused.complaint
    assert not (tmp_path / "campaign").exists()
