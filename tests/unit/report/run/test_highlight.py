from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from adaexplore.report.run.highlight import highlight


def coloured(source: str) -> list[tuple[str, str]]:
    """Every coloured piece as (class letter, text)."""
    pieces = []
    for line, runs in highlight(source):
        at = 0
        for letter, length in re.findall(r"(\D)(\d+)", runs):
            pieces.append((letter, line[at : at + int(length)]))
            at += int(length)
    return pieces


def test_python_is_coloured_by_kind():
    pieces = coloured("def run(x):\n    return x * 2  # twice\n")

    assert ("k", "def") in pieces
    assert ("f", "run") in pieces
    assert ("n", "2") in pieces
    assert ("c", "# twice") in pieces


def test_a_kernel_inside_a_string_is_coloured_in_its_own_language():
    cpp = coloured("CODE = r'''\n#include <cmath>\nvoid run(float* x) { return; }\n'''\n")
    triton = coloured("CODE = '''\n@triton.jit\ndef kernel(x):\n    pass\n'''\n")
    cuda = coloured("CODE = '''\n__global__ void run(float* x) { return; }\n'''\n")

    assert ("k", "return") in cpp
    assert ("k", "return") in cuda
    assert ("f", "kernel") in triton


def test_an_ordinary_string_is_coloured_as_a_string():
    assert ("s", "def not_code():") in coloured('"""\ndef not_code():\n"""\n')


@given(st.text(max_size=200))
def test_no_character_is_lost_and_no_run_is_longer_than_its_line(source):
    lines = highlight(source)

    assert "\n".join(line for line, _ in lines) == source
    for line, runs in lines:
        assert sum(int(length) for length in re.findall(r"\D(\d+)", runs)) <= len(line)
