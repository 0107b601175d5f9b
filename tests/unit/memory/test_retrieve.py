import dataclasses

import pytest
from test_memory_files import RULE

from adaexplore.memory.retrieve import applies, relevant, tokens
from adaexplore.rule import Signature, Where

HERE = Where("3.9.0", "sm_90")
BASE = dataclasses.replace(RULE, holds=(HERE,), gone=(), lift=None)


def rule(name, *topics, **changes):
    return dataclasses.replace(BASE, name=name, topics=topics, **changes)


def names(rules, text, **options):
    return [r.name for r in relevant(rules, text, triton="3.9.0", **options)]


class TestRelevant:
    def test_only_what_the_text_names(self):
        rules = [rule("dot", "tl.dot"), rule("sum", "tl.sum"), rule("none")]
        assert names(rules, "acc = tl.dot(a, b)") == ["dot"]

    @pytest.mark.parametrize("text", ["tl.dot_scaled(a)", "xtl.dot(a)", "a.tl.dot(b)"])
    def test_a_part_of_a_name_is_not_the_name(self, text):
        assert names([rule("dot", "tl.dot")], text) == []

    def test_operators_are_topics_too(self):
        assert names([rule("power", "**")], "y = x**2") == ["power"]

    def test_what_explains_the_failure_comes_first(self):
        failure = Signature("compile_error", "AttributeError", "relu", "…")
        rules = [rule("dot", "tl.dot"), rule("relu", "tl.relu", signature=failure)]
        assert names(rules, "tl.dot(a, b)", failure=failure) == ["relu", "dot"]
        assert names(rules, "tl.dot(a, b)") == ["dot"]

    def test_a_wrong_output_explains_nothing_by_itself(self):
        wrong = Signature("wrong_output")
        assert names([rule("mask", "mask", signature=wrong)], "", failure=wrong) == []

    def test_more_support_wins_among_equals(self):
        rules = [rule("a", "tl.dot", support=1), rule("b", "tl.dot", support=5)]
        assert names(rules, "tl.dot") == ["b", "a"]

    def test_where_there_is_no_code_yet_the_others_follow(self):
        rules = [rule("sum", "tl.sum"), rule("dot", "tl.dot"), rule("known", "tl.max", support=9)]
        assert names(rules, "torch.softmax; tl.dot", fill=True) == ["dot", "known", "sum"]

    def test_within_the_budget(self):
        rules = [rule(f"r{i}", "tl.dot") for i in range(50)]
        most = 10 * tokens(BASE)
        assert len(names(rules, "tl.dot", most_tokens=most)) == 10
        assert names(rules, "tl.dot", most_tokens=0) == []


class TestApplies:
    def test_where_it_was_seen_to_hold(self):
        assert applies(BASE, "3.9.0")

    def test_not_where_it_is_gone(self):
        assert not applies(dataclasses.replace(BASE, gone=(Where("4.0.0", "sm_90"),)), "4.0.0")

    def test_it_may_be_gone_on_one_target_only(self):
        both = dataclasses.replace(BASE, gone=(Where("3.9.0", "sm_100"),))
        assert applies(both, "3.9.0")

    def test_where_nobody_looked_it_is_believed(self):
        assert applies(BASE, "5.0.0")
        assert not applies(dataclasses.replace(BASE, holds=()), "5.0.0")
