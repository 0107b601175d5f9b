"""Matchers find every program that they are about, and none that is right."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_memory_files import RULE

from adaexplore.core.errors import BadInputError
from adaexplore.core.rule import Matcher, Platform
from adaexplore.memory.files import BUNDLED, load_memory, memory_path, save_memory
from adaexplore.memory.kernels import Module
from adaexplore.memory.lint import advice, lint
from adaexplore.memory.patterns import CONSTRUCTS, check_matcher, lines

HONEST = sorted((Path(__file__).parents[2] / "adversarial" / "honest").rglob("*.py"))
RULES = load_memory(memory_path(BUNDLED))
MATCHED = [rule for rule in RULES if rule.matcher]
HEAD = "import torch\nimport triton\nimport triton.language as tl\n"


def kernel(body, head=HEAD):
    return f"{head}\n@triton.jit\ndef kernel(x_ptr, n, B: tl.constexpr):\n    {body}\n"


def found(matcher, source):
    return list(lines(matcher, Module(source)))


def test_many_rules_have_a_matcher():
    assert len(MATCHED) >= 80


@pytest.mark.parametrize("matched", MATCHED, ids=lambda rule: rule.name)
def test_a_matcher_finds_its_witness_and_can_be_used(matched):
    check_matcher(matched.matcher)
    assert found(matched.matcher, matched.witness)


def test_no_matcher_finds_anything_in_what_is_right():
    right = {f"remedy of {each.name}": each.remedy for each in RULES}
    right |= {str(path): path.read_text() for path in HONEST}
    assert len(right) > 300
    wrong = [
        (matched.name, name)
        for name, source in right.items()
        for module in [Module(source)]
        for matched in MATCHED
        if list(lines(matched.matcher, module))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("code", "body", "hit"),
    [
        ("tl.tanh", "y = tl.tanh(n)", True),
        ("tl.tanh", "y = tl.math.tanh(n)", False),
        ("tl.dot(..., trans_b=_)", "y = tl.dot(n, n, trans_b=True)", True),
        ("tl.dot(..., trans_b=_)", "y = tl.dot(n, n)", False),
        ("tl.load(_, other=_)", "y = tl.load(x_ptr, other=0.0)", True),
        ("tl.load(_, other=_)", "y = tl.load(x_ptr, mask=n, other=0.0)", False),
        ("tl.load(_, other=_)", "y = tl.load(x_ptr, **options)", False),
        ("tl.arange(_)", "y = tl.arange(*bounds)", False),
        ("_.float()", "y = (n + 1).float()", True),
        ("_ in _", "y = n in (1, 2)", True),
        ("_ in _", "y = n == 1", False),
        ("tl.join((_, ...))", "y = tl.join((n, n, n))", True),
        ("torch._(_)", "y = torch.exp(n)", True),
        ("abs(_)", "y = abs(n)", True),
        ("abs(_)", "abs = n", False),
    ],
)
def test_patterns_are_python_with_wildcards(code, body, hit):
    assert bool(found(Matcher((code,)), kernel(body))) == hit


@pytest.mark.parametrize(
    ("condition", "value", "holds"),
    [
        ("not a power of two", "100", True),
        ("not a power of two", "128", False),
        ("not a power of two", "B", False),
        ("< 16", "8", True),
        ("< 16", "16", False),
        (">= -2", "0", True),
        ("a float", "1.0", True),
        ("a float", "1", False),
        ("a string", "'1'", True),
        ("a tuple", "(1, 2)", True),
        ("an integer", "True", False),
    ],
)
def test_wildcards_may_have_conditions(condition, value, holds):
    matcher = Matcher(("tl.arange(0, _N)",), where={"_N": condition})
    assert bool(found(matcher, kernel(f"y = tl.arange(0, {value})"))) == holds


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (HEAD, "tl.tanh"),
        ("import triton\nfrom triton import language as lang\n", "lang.tanh"),
        ("import triton\n", "triton.language.tanh"),
        ("import triton\nfrom triton.language import tanh\n", "tanh"),
        ("import triton\nfrom triton.language import tanh as t\n", "t"),
    ],
)
def test_names_are_what_was_imported(head, name):
    source = f"{head}\n@triton.jit\ndef kernel(n):\n    y = {name}(n)\n"
    assert found(Matcher(("tl.tanh",)), source) == [len(source.splitlines())]
    shadowed = source.replace("    y =", f"    {name.partition('.')[0]} = n\n    y =")
    assert found(Matcher(("tl.tanh",)), shadowed) == []


def test_kernels_and_what_is_around_them_are_looked_at_apart():
    source = kernel("y = x_ptr") + "\ndef host(x):\n    for i in x:\n        break\n"
    assert found(Matcher(construct="break"), source) == []
    assert found(Matcher(construct="break", scope="host"), source) == [11]
    autotuned = source.replace("@triton.jit", "@triton.heuristics({'B': lambda a: 1})\n@triton.jit")
    assert found(Matcher(construct="lambda"), autotuned) == []


def test_global_numbers_are_those_that_a_kernel_reads_as_such():
    matcher = Matcher(construct="plain global number")
    assert found(matcher, kernel("y = n * LIMIT", f"{HEAD}LIMIT = 3\n"))
    for head in ("LIMIT = tl.constexpr(3)\n", "LIMIT = 3\ndef f(LIMIT): pass\n", ""):
        assert not found(matcher, kernel("y = n * LIMIT", HEAD + head))


@pytest.mark.parametrize(
    ("matcher", "complaint"),
    [
        (Matcher(), "either 'code' or a 'construct'"),
        (Matcher(("_",), "break"), "either 'code' or a 'construct'"),
        (Matcher(construct="goto"), "no such construct: 'goto'; known: assignment expression"),
        (Matcher(("a b",)), "'a b' is no single expression or statement"),
        (Matcher(("a; b",)), "'a; b' is no single expression"),
        (Matcher(("f(_)",), where={"_N": "a float"}), "'_N', which 'code' does not have"),
        (Matcher(("f(_N)",), where={"_N": "odd"}), "no such condition: 'odd'"),
    ],
)
def test_a_matcher_that_cannot_be_used_is_refused(matcher, complaint):
    with pytest.raises(BadInputError, match=complaint):
        check_matcher(matcher)


def test_so_is_the_memory_that_has_it(tmp_path):
    path = tmp_path / "memory.toml"
    save_memory(path, [dataclasses.replace(RULE, matcher=Matcher(construct="break"))])
    path.write_text(path.read_text().replace('"break"', '"goto"'))
    with pytest.raises(BadInputError, match="rule 'no-power-operator': no such construct: 'goto'"):
        load_memory(path)


def rule(name, code, *, holds=("3.9.0",), gone=()):
    return dataclasses.replace(
        RULE,
        name=name,
        matcher=Matcher((code,)),
        holds=tuple(Platform(v, "sm_90") for v in holds),
        gone=tuple(Platform(v, "sm_90") for v in gone),
    )


def test_lint_says_which_rules_are_broken_where():
    rules = [rule("ones", "tl.ones"), rule("tanh", "tl.tanh"), dataclasses.replace(RULE, name="x")]
    source = kernel("y = tl.tanh(n)\n    z = tl.ones((B,))\n    z = tl.tanh(z)")
    hits = lint(source, rules, "3.9.0")
    assert [(hit.rule.name, hit.line) for hit in hits] == [("tanh", 7), ("ones", 8)]


def test_lint_leaves_out_what_does_not_hold_for_this_triton():
    rules = [rule("tanh", "tl.tanh", holds=("3.6.0",), gone=("3.9.0",))]
    assert lint(kernel("y = tl.tanh(n)"), rules, "3.9.0") == []
    assert len(lint(kernel("y = tl.tanh(n)"), rules, "3.6.0")) == 1


def test_advice_shows_the_line_the_rule_and_how_it_is_done():
    source = kernel("y = tl.tanh(n)")
    programs = {"witness": "a = 1\ny = tl.tanh(x)\n", "remedy": "a = 1\ny = libdevice.tanh(x)\n"}
    broken = dataclasses.replace(rule("tanh", "tl.tanh"), **programs)
    [hit] = lint(source, [broken], "3.9.0")
    assert advice(hit, source).splitlines() == [
        "Line 7: y = tl.tanh(n)",
        broken.statement,
        "Wrong (-) and right (+) in another kernel:",
        "- y = tl.tanh(x)",
        "+ y = libdevice.tanh(x)",
    ]


@given(st.text(max_size=60) | st.sampled_from(["def f(:", "\0", "(" * 500, "x = '\ud800'"]))
def test_lint_takes_any_text(text):
    assert lint(text, [rule("tanh", "tl.tanh")], "3.9.0") == []


@given(st.sampled_from(RULES), st.sampled_from(sorted(CONSTRUCTS)))
def test_every_construct_takes_every_module(bundled, construct):
    for scope in ("kernel", "host"):
        for line in found(Matcher(construct=construct, scope=scope), bundled.witness):
            assert 1 <= line <= len(bundled.witness.splitlines())
