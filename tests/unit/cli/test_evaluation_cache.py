"""Runs that share evaluations, from the command line."""

import pytest
from answering import LOCAL

from adaexplore.store import read_run


@pytest.mark.slow
def test_a_second_run_takes_a_verdict_over(adaexplore, llm, problem, candidate, file, tmp_path):
    wrong = file("wrong.py", candidate.read_text().replace("+ 1", "+ 2"))
    search = ("--start-from", wrong, "--model", LOCAL, "--steps", 1, "--device", "cpu")
    for name in ("first", "second"):
        words = (*search, "--run", tmp_path / name, "--evaluation-cache", tmp_path / "shared.db")
        done = adaexplore("explore", problem, *words)
        assert done.code == 0, done
        with read_run(tmp_path / name) as run:
            start, _ = run.store.nodes()
    assert start.evaluation.status == "wrong_output"
    assert "taken over from an evaluation of 20" in start.evaluation.detail
    assert start.evaluation.cost.wall_s == 0


def test_a_url_with_a_password_is_refused(adaexplore, problem):
    place = "postgresql://me:secret@host/name"
    done = adaexplore("explore", problem, "--evaluation-cache", place)
    assert done.code == 2
    assert "leave the password" in done.complaint
