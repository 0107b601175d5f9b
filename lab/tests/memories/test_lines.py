import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_memory_files import RULE

from adaexplore.core.errors import BadInputError
from adaexplore.memory import (
    Saying,
    SayingMatch,
    find_rules,
    is_checkable,
    read_sayings,
    supported_rules,
)
from adaexplore.memory.files import BUNDLED, beliefs, load_memory, memory_path

KNOWN = [*load_memory(memory_path(BUNDLED)), *beliefs()]


class TestSayings:
    def test_lines_that_were_met_often_enough(self, tmp_path):
        path = tmp_path / "rules.txt"
        path.write_text("Do this.||3.0\n\nDo || that. || 12\nSeldom.||2\n")
        assert read_sayings(path, 3) == [Saying("Do this.", 3.0), Saying("Do || that.", 12.0)]

    @pytest.mark.parametrize("line", ["Do this.", "Do this.||often", "||3", "Do this.|3"])
    def test_what_is_no_such_line(self, tmp_path, line):
        path = tmp_path / "rules.txt"
        path.write_text(f"Fine.||3\n{line}\n")
        with pytest.raises(BadInputError, match="line 2: write it as statement"):
            read_sayings(path, 0)


class TestFind:
    @pytest.mark.parametrize(
        ("statement", "name"),
        [
            ("There is no triton.language.log1p.", "no-tl-log1p"),
            ("Never write `break` in a kernel.", "no-break"),
            ("A module-level global must not be read in a @triton.jit kernel.", "global-constants"),
            ("Do not index a tensor with an integer in a kernel.", "no-element-of-a-block"),
            ("The grid of a launch must not be an integer.", "grid-is-a-tuple"),
            ("Never call int() on a Triton tensor.", "no-builtin-casts"),
            ("tl.load(ptr + offs, mask=mask, other=0.0) does not compile.", "belief-load"),
            ("tl.sum has no keyword argument dtype.", "belief-sum-has-no-dtype"),
        ],
    )
    def test_the_rule_that_says_the_same(self, statement, name):
        [found] = find_rules([Saying(statement, 3)], KNOWN)
        assert found.rule is not None
        assert found.rule.name == name

    @pytest.mark.parametrize(
        "statement",
        [
            "You cannot access x.shape when x is an int.",
            "A kernel cannot have an else at line 41.",
            "Install the package before you import it.",
            "The Triton kernel cannot be compiled.",
        ],
    )
    def test_what_could_be_true_of_no_other_program_is_no_rule(self, statement):
        [found] = find_rules([Saying(statement, 3)], KNOWN)
        assert found.rule is None
        assert not is_checkable(found.saying)

    def test_what_nobody_knows_is_left_open(self):
        [found] = find_rules([Saying("tl.frobnicate wants a whizzle.", 3)], KNOWN)
        assert found.rule is None
        assert is_checkable(found.saying)

    @pytest.mark.parametrize(
        "statement",
        [
            "You cannot call the .unsqueeze method on a Triton 'tensor' object (e.g., the result "
            "of tl.arange) inside a Triton kernel.",
            "You cannot call tl.frobnicate(0, BLOCK) in a kernel.",
        ],
    )
    def test_a_rule_about_another_function_is_not_the_same(self, statement):
        [found] = find_rules([Saying(statement, 3)], KNOWN)
        assert found.rule is None

    def test_nearly_every_rule_is_found_by_its_own_words(self):
        found = find_rules([Saying(rule.statement, 3) for rule in KNOWN], KNOWN)
        others = [
            (rule.name, one.rule.name)
            for rule, one in zip(KNOWN, found, strict=True)
            if one.rule is not None and one.rule.name != rule.name
        ]
        assert len(others) <= 0.05 * len(KNOWN), others

    @given(st.text(max_size=80))
    def test_any_text_will_do(self, text):
        [found] = find_rules([Saying(text, 1)], KNOWN[:5])
        assert found.likeness >= 0.0
        assert find_rules([Saying(text, 1)], []) == [SayingMatch(Saying(text, 1), None)]


def test_what_was_met_elsewhere_counts_as_support():
    other = dataclasses.replace(RULE, name="other")
    found = [
        SayingMatch(Saying("a", 10), RULE),
        SayingMatch(Saying("b", 5), RULE),
        SayingMatch(Saying("c", 9), None),
    ]
    [rule] = supported_rules([RULE, other], found)
    assert (rule.name, rule.support, rule.source) == (RULE.name, 15, "import")
