"""Speed rules: both programs right, and one of them faster, where that can be measured."""

import dataclasses

import pytest
from test_memory_files import RULE

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Problem
from adaexplore.core.rule import Gain, Platform, Signature
from adaexplore.core.verdict.evaluation import Estimate, Failed, Paired, Passed, Timing
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.memory.check import Checker
from adaexplore.memory.files import from_data, load_memory, save_memory, to_data
from adaexplore.memory.merge import merge_memories
from adaexplore.memory.retrieve import applies, faster, gain_at, relevant, tokens

HERE = Platform("3.9.0", "sm_90", "NVIDIA H200")
OFFLINE = Platform("3.9.0", "sm_90")
BASE = dataclasses.replace(
    RULE,
    name="large-tiles",
    kind="speed",
    signature=Signature("slow"),
    holds=(),
    gone=(),
    matcher=None,
    lift=None,
    topics=("tl.dot",),
)
ESTIMATED = Passed("fp32", 0.0, Estimate(1.0, "memory", "sm_90"))
WRONG = Failed("wrong_output", "off by 3")


def timed(speedup=None, low=0.0, high=0.0):
    parent = None if speedup is None else Paired(20.0, speedup, (low, high))
    return Passed("fp32", 0.0, Timing(10.0, (9.0, 11.0), {"eager": 9.0}, 1, (1, 1), 1, 50, parent))


class Judge:
    """Knows its verdicts, and remembers what it was asked to time beside what."""

    def __init__(self, witness, remedy):
        self._verdicts = {BASE.witness: witness, BASE.remedy: remedy}
        self.asked = []

    def prepare(self):
        return {}

    def evaluate(self, candidate, parent=None, *, again=False):
        self.asked.append((candidate.source, parent and parent.source, again))
        return self._verdicts[candidate.source]

    def close(self):
        pass


def checked(witness, remedy, rule=BASE, where=HERE):
    return Checker(lambda name, source: Judge(witness, remedy), where).check(rule)


def gain(speedup, where=HERE):
    return Gain(where, speedup, (speedup - 0.01, speedup + 0.01))


def held(name, speedup, *topics, where=HERE):
    gains = (gain(speedup, where),)
    return dataclasses.replace(BASE, name=name, topics=topics, holds=(where,), gains=gains)


class TestChecked:
    @pytest.mark.parametrize(
        ("remedy", "holds", "gone", "why"),
        [
            (timed(1.8, 1.7, 1.9), True, False, ""),
            (timed(1.1, 1.04, 1.2), False, False, "the remedy may not be faster: 1.1x, 95 %"),
            (timed(1.01, 0.99, 1.04), False, True, "the remedy is not faster: 1.01x"),
            (timed(0.5, 0.4, 0.6), False, True, "the remedy is not faster: 0.5x"),
        ],
    )
    def test_the_whole_interval_decides(self, remedy, holds, gone, why):
        one = checked(timed(), remedy)
        assert one.true == holds
        assert one.why.startswith(why)
        assert not one.untimed
        assert (one.rule.holds, one.rule.gone) == ((HERE,) * holds, (HERE,) * gone)
        [measured] = one.rule.gains
        assert measured.where == HERE
        assert measured.speedup == remedy.timing.parent.speedup

    def test_the_remedy_is_timed_beside_the_witness_even_if_it_compiles_to_the_same(self):
        judge = Judge(timed(), timed(1.8, 1.7, 1.9))
        Checker(lambda name, source: judge, HERE).check(BASE)
        assert judge.asked == [
            (BASE.witness, None, False),
            (BASE.remedy, BASE.witness, True),
        ]

    def test_a_new_measurement_takes_the_place_of_the_old(self):
        old = held("large-tiles", 3.0, "tl.dot")
        new = checked(timed(), timed(1.01, 0.99, 1.02), old).rule
        assert (new.holds, new.gone) == ((), (HERE,))
        assert new.gains == (Gain(HERE, 1.01, (0.99, 1.02)),)

    def test_without_a_gpu_nothing_is_noted(self):
        rule = held("large-tiles", 3.0, "tl.dot")
        one = checked(ESTIMATED, ESTIMATED, rule, OFFLINE)
        assert one.rule == rule
        assert not one.true
        assert one.untimed
        assert one.why.startswith("not measurable here")

    @pytest.mark.parametrize(
        ("witness", "remedy", "why"),
        [
            (WRONG, timed(), "the witness fails: wrong_output: off by 3"),
            (timed(), WRONG, "the remedy fails: wrong_output: off by 3"),
            (ESTIMATED, WRONG, "the remedy fails"),
            (timed(), timed(), "not measurable here"),
        ],
    )
    def test_what_was_not_compared_neither_holds_nor_is_gone(self, witness, remedy, why):
        one = checked(witness, remedy, held("large-tiles", 3.0, "tl.dot"))
        assert one.why.startswith(why)
        assert (one.rule.holds, one.rule.gone, one.rule.gains) == ((), (), ())
        assert not one.untimed

    def test_a_probe_learns_that_its_witness_is_slow(self):
        unknown = dataclasses.replace(BASE, signature=Signature("runtime_error"))
        new_judge = lambda name, source: Judge(timed(), timed(1.8, 1.7, 1.9))  # noqa: E731
        assert Checker(new_judge, HERE).observe(unknown).rule.signature == Signature("slow")

    def test_other_rules_do_not_name_the_gpu(self):
        class Strict(Judge):
            def evaluate(self, candidate):
                return super().evaluate(candidate)

        other = dataclasses.replace(BASE, kind="compile", signature=Signature("compile_error"))
        broken = Failed("compile_error", "no")
        one = Checker(lambda name, source: Strict(broken, ESTIMATED), HERE).check(other)
        assert one.rule.holds == (OFFLINE,)


REFERENCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.sum(1)


def get_inputs():
    return [torch.randn(64, 512)]
"""
SUM = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return {}
"""


@pytest.mark.slow
def test_a_real_pair_is_measured(server):
    """On the CPU, without Triton: the witness does the same work many hundred times over."""

    class Local:
        def __init__(self, name, source):
            problem = Problem(name, source, "cpp", "cpu")
            self._local = LocalEvaluator(server, problem, timeout_s=60, memory_bytes=4 << 30)
            self.prepare, self.close = self._local.prepare, self._local.close

        def evaluate(self, candidate, parent=None, *, again=False):
            parent = parent and Candidate(parent.source, "cpp")
            return self._local.evaluate(Candidate(candidate.source, "cpp"), parent, again=again)

    rule = dataclasses.replace(
        BASE,
        reference=REFERENCE,
        witness=SUM.format("torch.stack([row.sum() for row in x for _ in range(9)])[::9]"),
        remedy=SUM.format("x.sum(1)"),
    )
    checker = Checker(Local, Platform("3.9.0", "sm_90", "a CPU"))
    one = checker.check(rule)
    checker.close()
    assert one.true, one.why
    [measured] = one.rule.gains
    assert measured.speedup_ci[0] <= measured.speedup <= measured.speedup_ci[1]


class TestFiles:
    def test_the_gpu_and_the_gain_are_kept(self, tmp_path):
        path = tmp_path / "speed.toml"
        save_memory(path, [held("large-tiles", 1.8, "tl.dot")])
        assert load_memory(path) == [held("large-tiles", 1.8, "tl.dot")]
        text = path.read_text()
        assert 'holds = ["3.9.0 sm_90 NVIDIA H200"]' in text
        assert 'gains = {"3.9.0 sm_90 NVIDIA H200" = [1.8, 1.79, 1.81]}' in text

    @pytest.mark.parametrize("numbers", [[1.8], 1.8, [1.8, "low", 1.9]])
    def test_a_gain_that_is_none_is_refused(self, numbers):
        data = to_data([held("large-tiles", 1.8, "tl.dot")])
        data["large-tiles"]["gains"] = {str(HERE): numbers}
        with pytest.raises(BadInputError, match=r"m: rule 'large-tiles': "):
            from_data(data, "m")


class TestMerged:
    def test_gains_of_both_are_kept_and_the_later_one_counts(self):
        other = Platform("3.9.0", "sm_90", "NVIDIA H100")
        old = dataclasses.replace(
            held("large-tiles", 1.8), gains=(gain(1.8), gain(1.5, other)), holds=(other, HERE)
        )
        [rule] = merge_memories([old], [held("large-tiles", 1.7)])
        assert rule.gains == (gain(1.5, other), gain(1.7))
        assert rule.holds == (other, HERE)

    def test_two_speed_rules_are_two(self):
        second = dataclasses.replace(held("stages", 1.4), statement="Take stages.")
        assert len(merge_memories([held("large-tiles", 1.8)], [second])) == 2


class TestRetrieved:
    H100 = Platform("3.9.0", "sm_90", "NVIDIA H100 80GB HBM3")

    def named(self, rules, text, **options):
        found = faster(rules, text, triton="3.9.0", target="sm_90", gpu=HERE.gpu, **options)
        return [rule.name for rule, _ in found]

    def test_the_larger_gain_comes_first_of_what_the_text_names(self):
        rules = [held("a", 1.2, "tl.dot"), held("b", 3.0, "tl.dot"), held("c", 9.0, "tl.sum")]
        assert self.named(rules, "acc = tl.dot(a, b)") == ["b", "a"]

    def test_they_take_a_third_of_the_budget_at_most(self):
        rules = [held(f"r{i}", 2.0, "tl.dot") for i in range(50)]
        assert len(self.named(rules, "tl.dot", most_tokens=6 * tokens(rules[0]))) == 2
        assert self.named(rules, "tl.dot", most_tokens=0) == []

    def test_they_are_not_among_the_others(self):
        assert relevant([held("a", 2.0, "tl.dot")], "tl.dot", triton="3.9.0", fill=True) == []

    def test_the_gpu_itself_decides(self):
        gone = dataclasses.replace(held("a", 2.0, "tl.dot", where=self.H100), gone=(HERE,))
        assert not applies(gone, "3.9.0", "sm_90", HERE.gpu)
        assert applies(gone, "3.9.0", "sm_90", self.H100.gpu)

    def test_else_another_gpu_of_the_target_but_none_of_another(self):
        rule = held("a", 2.0, "tl.dot", where=self.H100)
        assert gain_at(rule, "3.9.0", "sm_90", HERE.gpu) == gain(2.0, self.H100)
        assert gain_at(rule, "3.9.0", "sm_90") == gain(2.0, self.H100)
        assert gain_at(rule, "3.9.0", "sm_100", "NVIDIA B200") is None

    def test_the_same_gpu_on_another_version_before_another_gpu(self):
        older = Platform("3.6.0", "sm_90", HERE.gpu)
        gains = (gain(2.0, older), gain(5.0, self.H100))
        rule = dataclasses.replace(BASE, holds=(older, self.H100), gains=gains)
        assert gain_at(rule, "3.9.0", "sm_90", HERE.gpu) == gain(2.0, older)

    def test_where_it_is_not_faster_it_is_not_told(self):
        slow = dataclasses.replace(BASE, gone=(HERE,), gains=(gain(1.0),), topics=("tl.dot",))
        assert self.named([slow], "tl.dot") == []
