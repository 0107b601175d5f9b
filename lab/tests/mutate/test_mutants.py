"""Single defects of small sources, against the sources that they must give."""

import ast

import pytest

from adaexplore_lab.mutate.mutants import mutants


def changed(source):
    """Return the lines that mutants put in place of a source's, without their indentation."""
    return {m.added.strip() for m in mutants("a.py", source)}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", {"a <= b", "a >= b", "pass"}),
        ("a >= b", {"a > b", "a < b", "pass"}),
        ("a == b", {"a != b", "pass"}),
        ("a not in b", {"a in b", "pass"}),
        ("a is not b", {"a is b", "pass"}),
        ("a + b", {"a - b", "pass"}),
        ("a // b", {"a * b", "pass"}),
        ("a ** b", {"a * b", "pass"}),
        ("a and b", {"a or b", "pass"}),
        ("not a", {"(a)", "pass"}),
        ("-a", {"(a)", "pass"}),
        ("a = 3", {"a = 4"}),
        ("a = 0.25", {"a = 0.5"}),
        ("a = True", {"a = False"}),
        ("a = 'text'", set()),
        ("a = min(b)", {"a = max(b)"}),
        ("a = any(b)", {"a = all(b)"}),
        ("a = sorted(b)", {"a = sorted(b)[::-1]"}),
        ("a = f(b, c, d)", {"a = f(c, b, d)"}),
        ("a = f(*b, c)", set()),
        ("a = [b for b in c if d(b)]", {"a = [b for b in c if True]"}),
        ("a = b if c else d", {"a = b if not (c) else d"}),
        ("a.b = c", {"pass"}),
        ("a[b] = c", {"pass"}),
        ("a += b", {"a -= b"}),
        ("a = f'{b + 1}'", set()),
    ],
)
def test_a_statement_has_these_defects(source, expected):
    assert changed(source) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return a", {"return None"}),
        ("return None", {"return 0"}),
        ("return", {"pass"}),
        ("raise a", {"pass"}),
        ('"""A docstring."""', set()),
    ],
)
def test_a_function_has_these_defects(body, expected):
    assert changed(f"def f(a):\n    {body}") == expected


@pytest.mark.parametrize(
    "source",
    [
        "def f(a: Literal[3]) -> Literal[4]: ...",
        "@dataclass(frozen=True)\nclass A: ...",
        "if TYPE_CHECKING:\n    a = 3",
        "class A(Protocol):\n    a = 3",
    ],
)
def test_what_computes_nothing_has_none(source):
    assert changed(source) == set()


def test_every_mutant_is_a_program_with_one_line_changed():
    source = "def f(a):\n    if a < 3:  # few\n        return [a, 'ä', a - 1]\n    return a\n"
    found = mutants("a.py", source)
    assert len(found) >= 6
    for mutant in found:
        ast.parse(mutant.source)
        before, after = source.splitlines(), mutant.source.splitlines()
        different = [(b, a) for b, a in zip(before, after, strict=True) if a != b]
        assert different == [(mutant.removed, mutant.added)]
        assert before[mutant.line - 1] == mutant.removed


def test_a_mutant_stays_the_same_where_its_function_moves():
    source = "def f(a):\n    return a < 3\n"
    before = {m.identity for m in mutants("a.py", source)}
    after = {m.identity for m in mutants("a.py", f"import b\n\n\n{source}")}
    assert before == after
    assert not before & {m.identity for m in mutants("b.py", source)}
