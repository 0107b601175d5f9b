"""The tests that a benchmark itself makes of answers, run as programs by strangers."""

import pytest

from adaexplore.core.bench import BenchEntry, TheirVerdict
from adaexplore.run.bench.own_tests import OwnTests

GOLD = "print('result', 1 + 1)\n"
ENTRY = BenchEntry(
    "c", "1/1", "level 1", "a", "p.py", "a.py", "0", script="script.py", gold="gold.py"
)


@pytest.fixture
def tested(tmp_path, server):
    """Make a function that tests a script beside one of the benchmark's own function."""

    def tested(script, gold=GOLD, timeout_s=60.0, device="cpu"):
        (tmp_path / "script.py").write_text(script)
        (tmp_path / "gold.py").write_text(gold)
        return OwnTests(tmp_path, timeout_s, 4 << 30).tested(ENTRY, server, device).theirs

    return tested


@pytest.mark.parametrize(
    ("script", "called", "right"),
    [
        ("if __name__ == '__main__':\n    print('result', 2)", True, True),
        ("import sys\nprint('result 2')\nsys.exit(0)", True, True),
        ("import os\nos.write(1, b'result 2\\n')", True, True),
        ("print('result', 3)", True, False),
        ("", True, False),
        ("print('result 2')\nraise NameError('no such function')", False, False),
        ("print('result 2')\nexit(3)", False, False),
        ("def (", False, False),
    ],
    ids=["same", "exit 0", "file descriptor", "other", "silent", "error", "exit 3", "syntax"],
)
def test_an_answer_is_called_if_its_script_ends_and_right_if_it_prints_the_same(
    tested, script, called, right
):
    found = tested(script)
    assert (found.called, found.right) == (called, right)


def test_a_failed_call_is_told_with_its_error(tested):
    assert "NameError: no such function" in tested("raise NameError('no such function')").said


@pytest.mark.gpu
def test_a_script_sees_the_gpu(tested):
    script = "import torch, triton\nassert torch.cuda.is_available()\n"
    script += "triton.runtime.driver.active.get_current_target()\nprint('result 2')\n"
    assert tested(script, device="cuda:0").right


def test_a_script_that_never_ends_is_not_called(tested):
    found = tested("while True: pass", timeout_s=1.0)
    assert (found.called, found.said) == (False, "call failed: it took more than 1 s")


@pytest.mark.parametrize("reply", ["{}", "{'why': 0, 'printed': ''}", "{'why': '', 'more': 1}"])
def test_a_script_that_answers_for_its_job_in_another_form_is_not_called(tested, reply):
    script = f"""
import sys, time
frame = sys._getframe()
while "channel" not in frame.f_locals:
    frame = frame.f_back
frame.f_locals["channel"].send({reply})
time.sleep(60)
"""
    found = tested(script)
    assert (found.called, found.said) == (
        False,
        "call failed: its process sent a malformed reply",
    )


def test_nothing_is_right_beside_a_test_that_fails_with_their_own_function(tested):
    found = tested(GOLD, gold="import lost_package")
    assert (found.called, found.right) == (True, False)
    assert "lost_package" in found.said


def test_a_script_reads_nothing_of_the_folder(tested, tmp_path):
    said = tested(f"open({str(tmp_path / 'gold.py')!r})").said
    assert "PermissionError" in said


@pytest.mark.parametrize(
    "given", [{"script": ""}, {"theirs": TheirVerdict("passed", right=True)}], ids=["none", "told"]
)
def test_an_entry_without_a_test_or_with_a_verdict_stays(tmp_path, server, given):
    fields = {name: getattr(ENTRY, name) for name in BenchEntry.__slots__}
    entry = BenchEntry(**{**fields, **given})
    assert OwnTests(tmp_path, 1.0, 4 << 30).tested(entry, server, "cpu") is entry
