import dataclasses
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.errors import BadInputError
from adaexplore.core.rule import Matcher, Platform, Rule, Signature, unchecked_rule
from adaexplore.memory.files import load_memory, save_memory
from adaexplore.memory.listing import listing, programs

RULE = Rule(
    name="no-power-operator",
    kind="compile",
    statement="Blocks have no `**`: multiply.",
    reference="class Model:\n    pass\n",
    witness='class ModelNew:\n    """Says \'so\'."""\n',
    remedy="class ModelNew:\n    pass\n",
    signature=Signature("compile_error", "UnsupportedLanguageConstruct", "**", "no **"),
    holds=(Platform("3.6.0", "sm_90"), Platform("3.9.0", "sm_90")),
    gone=(Platform("3.12.0", "sm_100"),),
    support=4,
    tasks=("a", "b"),
    topics=("**", "pow"),
    lift=0.25,
    lift_tries=12,
    matcher=Matcher(code=("_ ** _A",), where={"_A": "a float"}),
)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1).filter(str.strip)


@given(texts=st.tuples(TEXT, TEXT, TEXT, TEXT), topics=st.lists(TEXT, max_size=3))
def test_what_is_saved_is_loaded(tmp_path_factory, texts, topics):
    statement, reference, witness, remedy = texts
    rule = dataclasses.replace(
        RULE,
        statement=statement,
        reference=reference,
        witness=witness,
        remedy=remedy,
        topics=tuple(topics),
    )
    path = tmp_path_factory.mktemp("memory") / "memory.toml"
    save_memory(path, [rule])
    assert load_memory(path) == [rule]


def test_code_is_there_to_be_read(tmp_path):
    path = tmp_path / "memory.toml"
    save_memory(path, [RULE])
    text = path.read_text()
    programs = """  class ModelNew:
-     \"\"\"Says 'so'.\"\"\"
+     pass
"""
    assert f"programs = '''\n{programs}'''" in text
    assert text.startswith("format = 2\n")


def test_a_shared_reference_is_written_once(tmp_path):
    path = tmp_path / "memory.toml"
    rules = [dataclasses.replace(RULE, name=name) for name in ("one", "three", "two")]
    rules[2] = dataclasses.replace(rules[2], reference="class Model:\n    y = 1\n")
    save_memory(path, rules)
    text = path.read_text()
    assert text.count("reference = ") == 2
    assert text.count('reference_of = "one"') == 1
    assert load_memory(path) == rules


@given(TEXT, TEXT)
def test_a_listing_has_both_programs(witness, remedy):
    assert programs(listing(witness, remedy)) == (witness, remedy)


def test_rules_lie_in_one_order_whatever_order_they_came_in(tmp_path):
    others = [
        dataclasses.replace(RULE, name="zeros", kind="compile"),
        dataclasses.replace(RULE, name="abc", kind="silent"),
    ]
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    save_memory(one, [RULE, *others])
    save_memory(two, [*reversed(others), RULE])
    assert one.read_text() == two.read_text()
    assert [rule.name for rule in load_memory(one)] == ["no-power-operator", "zeros", "abc"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("format = 2", "format = 1"), "its first line is to be `format = 2`, not 1"),
        (("format = 2\n", ""), "not None"),
        (('kind = "compile"', 'kind = "odd"'), "rule 'no-power-operator': 'kind' is to be one of"),
        (('kind = "compile"', 'kind = "compile"\nnew = 1'), "a rule has no field 'new'"),
        (("statement", "statements"), "a rule has no field 'statements'"),
        (('status = "compile_error", ', ""), "no 'status' of a failure"),
        (('"3.6.0 sm_90"', '"3.6.0"'), "is to be a version and a target"),
        (("[no-power-operator]", '["No power"]'), "small letters, digits and hyphens"),
        (("support = 4", 'support = "many"'), "invalid literal for int"),
        (("[no-power-operator]", "[no-power"), "is no memory"),
        (('scope = "kernel"', 'scope = "all"'), "'scope' is to be kernel or host"),
        (("reference = ", "reference_of = 'x'\nreferenced = "), "no field 'referenced'"),
        (("reference = ", "reference_of = "), "'reference_of' names no rule with a reference"),
        (("- ", "* "), "line 2 of its programs is to begin with '- ', '+ ' or two spaces"),
        (("matcher = {", "matcher = {odd = 1, "), "unexpected keyword argument 'odd'"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_in_one_line(tmp_path, change, words):
    path = tmp_path / "memory.toml"
    save_memory(path, [RULE])
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change, 1))
    with pytest.raises(BadInputError) as caught:
        load_memory(path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


UNCHECKED = unchecked_rule(
    "seen-0001", "You cannot do so.", support=7, tasks=("p",), source="failure"
)


def test_an_unchecked_rule_is_a_sentence_with_a_count(tmp_path):
    path = tmp_path / "memory.toml"
    save_memory(path, [UNCHECKED, RULE])
    assert load_memory(path) == [RULE, UNCHECKED]
    table = path.read_text().partition("[seen-0001]\n")[2]
    assert table.startswith('kind = "unchecked"\nstatement = "You cannot do so."\n')
    assert "programs" not in table


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('holds = ["3.9.0 sm_90"]\n', "an unchecked rule has no 'holds'"),
        ("programs = '  a'\n", "an unchecked rule has no 'programs'"),
        ("odd = 1\n", "a rule has no field 'odd'"),
    ],
)
def test_an_unchecked_rule_claims_no_evidence(tmp_path, more, words):
    path = tmp_path / "memory.toml"
    save_memory(path, [UNCHECKED])
    path.write_text(path.read_text() + more)
    with pytest.raises(BadInputError, match=words):
        load_memory(path)


@pytest.mark.parametrize("name", ["memory.toml", "memory.json"])
def test_a_pipe_is_no_memory(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(BadInputError, match="is no regular file; give a memory's file"):
        load_memory(tmp_path / name)


def test_a_place_that_cannot_be_read_or_written(tmp_path):
    with pytest.raises(BadInputError, match="No such file"):
        load_memory(tmp_path / "none.toml")
    with pytest.raises(BadInputError, match="cannot write"):
        save_memory(tmp_path / "none" / "memory.toml", [RULE])
