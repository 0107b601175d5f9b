"""Wrong command lines of adaexplore-lab."""

import pytest


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["simulate", "--nosuch"], "no such option: --nosuch (adaexplore-lab simulate --help)"),
        (["nosuch"], "no such command 'nosuch' (adaexplore-lab --help)"),
        (["replay", "/nowhere"], "/nowhere is not a run directory"),
    ],
)
def test_a_wrong_command_line_is_one_line(lab, words, complaint):
    done = lab(*words)
    assert done.code == 2
    assert complaint in done.complaint
