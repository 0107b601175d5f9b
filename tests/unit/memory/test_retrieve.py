import dataclasses

import pytest
from test_memory_files import RULE

from adaexplore.core.rule import Platform, Signature
from adaexplore.memory.retrieve import applies, relevant, tokens

HERE = Platform("3.9.0", "sm_90")
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

    def test_what_explains_an_earlier_failure_comes_next(self):
        last, before = (Signature("compile_error", "AttributeError", n) for n in ("relu", "gelu"))
        rules = [
            rule("dot", "tl.dot"),
            rule("gelu", "tl.gelu", signature=before),
            rule("relu", "tl.relu", signature=last),
        ]
        assert names(rules, "tl.dot", failure=last, earlier=[before]) == ["relu", "gelu", "dot"]
        assert names(rules, "tl.dot", failure=last) == ["relu", "dot"]

    def test_an_earlier_failure_of_the_same_type_and_other_words_chooses_nothing(self):
        signature = Signature("compile_error", "RuntimeError", "", "a pass pipeline failed")
        pipeline = rule("pipeline", signature=signature)
        other = Signature("compile_error", "RuntimeError", "", "no kernel image failed to load")
        assert names([pipeline], "", earlier=[other]) == []
        assert names([pipeline], "", earlier=[signature]) == ["pipeline"]

    def test_what_is_demanded_counts_for_more(self):
        rules = [rule("dot", "tl.dot"), rule("relu", "tl.relu")]
        assert names(rules, "tl.dot(a, b)", demand="use tl.relu") == ["relu", "dot"]

    def test_a_wrong_output_explains_nothing_by_itself(self):
        wrong = Signature("wrong_output")
        assert names([rule("mask", "mask", signature=wrong)], "", failure=wrong) == []

    def test_more_support_wins_among_equals(self):
        rules = [rule("a", "tl.dot", support=1), rule("b", "tl.dot", support=5)]
        assert names(rules, "tl.dot") == ["b", "a"]

    def test_a_lift_of_many_tries_is_believed_and_one_of_few_is_not(self):
        measured = [
            rule("noise", "tl.dot", lift=1.0, lift_tries=2),
            rule("signal", "tl.dot", lift=0.2, lift_tries=300),
            rule("harm", "tl.dot", lift=-0.2, lift_tries=300),
            rule("unknown", "tl.dot"),
        ]
        assert names(measured, "tl.dot") == ["signal", "noise", "unknown", "harm"]

    def test_where_there_is_no_code_yet_the_others_follow(self):
        rules = [rule("sum", "tl.sum"), rule("dot", "tl.dot"), rule("known", "tl.max", support=9)]
        assert names(rules, "torch.softmax; tl.dot", fill=True) == ["dot", "known", "sum"]

    def test_within_the_budget(self):
        rules = [rule(f"r{i}", "tl.dot") for i in range(50)]
        most = 10 * tokens(BASE)
        assert len(names(rules, "tl.dot", most_tokens=most)) == 10
        assert names(rules, "tl.dot", most_tokens=0) == []

    def test_a_topic_is_worth_the_more_the_fewer_rules_have_it(self):
        rules = [rule(f"load{i}", "tl.load") for i in range(5)] + [rule("scan", "tl.cumsum")]
        assert names(rules, "tl.cumsum(tl.load(p))")[0] == "scan"

    def test_what_all_code_names_tells_little(self):
        rules = [rule("assign", "="), rule("dot", "tl.dot"), rule("dots", "tl.dot")]
        assert names(rules, "c = tl.dot(a, b)") == ["dot", "dots", "assign"]

    def test_without_a_symbol_the_wording_tells_which_failure_it_is(self):
        def failing(message):
            return Signature("compile_error", "ValueError", "", message)

        rules = [
            rule("range", signature=failing("range must be a power of …")),
            rule("shape", signature=failing("Shape element … must be a power of …")),
        ]
        said = failing("Shape element … must be a power of … here")
        assert names(rules, "", failure=said) == ["shape", "range"]


class TestApplies:
    def test_where_it_was_seen_to_hold(self):
        assert applies(BASE, "3.9.0", "sm_90")

    def test_not_where_it_is_gone(self):
        new = Platform("4.0.0", "sm_90")
        assert not applies(dataclasses.replace(BASE, gone=(new,)), "4.0.0", "sm_90")

    def test_what_was_seen_there_decides(self):
        both = dataclasses.replace(BASE, gone=(Platform("3.9.0", "sm_100"),))
        assert applies(both, "3.9.0", "sm_90")
        assert applies(both, "3.9.0")
        assert not applies(both, "3.9.0", "sm_100")
        assert applies(both, "3.9.0", "sm_80")

    @pytest.mark.parametrize(
        ("version", "true"), [("3.5.1", True), ("3.7.0", True), ("3.10.0", False), ("4.0", False)]
    )
    def test_else_what_was_seen_on_the_nearest_version(self, version, true):
        ended = dataclasses.replace(BASE, holds=(Platform("3.6.0", "sm_90"),), gone=(HERE,))
        assert applies(ended, version, "sm_90") == true

    def test_a_version_may_be_a_build_of_ones_own(self):
        assert applies(BASE, "3.9.0+git1234", "sm_90")
        assert not applies(dataclasses.replace(BASE, holds=()), "3.9.0")
