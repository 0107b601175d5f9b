import dataclasses

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import Node
from adaexplore.core.problem import Checks, Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.proposer import Context
from adaexplore.core.rule import Gain, Matcher, Platform, Rule, Signature, unchecked_rule
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Estimate, Failed, Fault, Passed
from adaexplore.memory.files import save_memory
from adaexplore.run.recall import linting, memory_for, recalling, require_recalled

DOT = Rule(
    name="dot-fp16",
    kind="compile",
    statement="Both sides of tl.dot have one dtype.",
    reference="r",
    witness="w",
    remedy="m",
    signature=Signature("compile_error", "CompilationError", "dot"),
    holds=(Platform("3.9.0", "sm_90"),),
    topics=("tl.dot",),
)
RELU = dataclasses.replace(
    DOT,
    name="no-relu",
    statement="There is no tl.relu.",
    topics=("tl.relu",),
    signature=Signature("compile_error", "AttributeError", "relu"),
)
PROBLEM = Problem("p", "class Model: ...", "triton", "cpu", target="sm_90")
HERE = Environment(triton="3.9.0")


def node(source, reason="no", feedback=None):
    verdict = Failed("compile_error", reason, feedback=feedback)
    return Node(1, 0, "large", Proposal(Candidate(source, "triton"), "x", ""), verdict)


def recalled(context, most_tokens=400):
    return recalling([DOT, RELU], Config(memory_tokens=most_tokens))(context)


def test_rules_about_the_code_are_recalled():
    context = Context(PROBLEM, "small", 1, window=(node("tl.dot(a, b)"),), environment=HERE)
    assert recalled(context) == [DOT.statement]


def test_unchecked_rules_are_recalled_by_their_count_alone_and_marked():
    said = unchecked_rule("seen-0001", "You cannot use tl.dot.", support=3, source="failure")
    context = Context(PROBLEM, "large", 1, environment=HERE)
    assert said.statement not in recalling([DOT, said], Config())(context)
    whole = recalling([DOT, said], Config(memory_threshold=3))
    assert whole(context) == ["You cannot use tl.dot. (unchecked)"]
    published = recalling([DOT, said], Config(memory_threshold=1, contents="published"))
    assert published(context) == [DOT.statement, "You cannot use tl.dot."]


def test_a_memory_that_no_prompt_would_show_is_refused():
    said = unchecked_rule("seen-0001", "You cannot use tl.dot.", support=3, source="failure")
    for rules, threshold in [([], 0), ([said], 3), ([said, DOT], 0)]:
        require_recalled(rules, Config(memory_threshold=threshold))
    with pytest.raises(BadInputError, match="nobody tested its rules"):
        require_recalled([said], Config(memory_threshold=0))


def test_a_memory_about_other_languages_is_refused_by_their_names(tmp_path):
    rules = [dataclasses.replace(DOT, name=name, language=name) for name in ("triton", "gluon")]
    save_memory(tmp_path / "mine.toml", rules)
    cpp = dataclasses.replace(PROBLEM, language="cpp", target=None)
    with pytest.raises(BadInputError, match="its rules are about Gluon and Triton, and this"):
        memory_for(cpp, str(tmp_path / "mine.toml"))


def test_rules_about_the_demand_come_before_rules_about_the_problem():
    problem = dataclasses.replace(PROBLEM, source="class Model: ...  # a @ b, linear")
    context = Context(problem, "large", 1, environment=HERE)
    demanding = recalling([DOT, RELU], Config(demand="Have tl.relu in it."))
    assert demanding(context) == [RELU.statement, DOT.statement]
    assert recalled(context) == [DOT.statement, RELU.statement]


def test_the_rule_that_explains_the_last_failure_comes_first():
    fault = Fault("AttributeError", "module 'triton.language' has no attribute 'relu'")
    last = node("tl.dot(a, b); tl.relu(x)", feedback=fault)
    context = Context(PROBLEM, "small", 1, window=(last,), environment=HERE)
    assert recalled(context) == [RELU.statement, DOT.statement]


def test_a_failure_chooses_no_rule_where_prompts_tell_the_verdict_alone():
    fault = Fault("AttributeError", "module 'triton.language' has no attribute 'relu'")
    last = node("tl.dot(a, b); tl.relu(x)", feedback=fault)
    without = node("tl.dot(a, b); tl.relu(x)")
    told = [
        recalling([DOT, RELU], Config(feedback="verdict"))(
            Context(PROBLEM, "small", 1, window=(one,), environment=HERE)
        )
        for one in (last, without)
    ]
    assert told[0] == told[1]


def by_model(status, feedback=None):
    failed = dataclasses.replace(node("x"), evaluation=Failed(status, "no", feedback=feedback))
    return dataclasses.replace(
        failed, proposal=Proposal(Candidate("x", "triton"), "model", "an idea")
    )


def test_a_large_step_has_the_rule_that_explains_a_failure_of_the_run():
    fault = Fault("AttributeError", "module 'triton.language' has no attribute 'relu'")
    failed = by_model("compile_error", fault)
    unlike = by_model("compile_error", Fault("AttributeError", "no attribute 'gelu'"))
    tokens = Config(memory_tokens=15)  # for one of the two

    def told(settings, *history):
        problem = dataclasses.replace(PROBLEM, source="class Model: ...  # a @ b")
        context = Context(problem, "large", 1, history=history, environment=HERE)
        return recalling([DOT, RELU], settings)(context)

    assert told(tokens, failed) == told(tokens, failed, unlike) == [RELU.statement]
    assert told(tokens, unlike) == [DOT.statement]
    verdict = tokens.model_copy(update={"feedback": "verdict"})
    assert told(verdict, failed) == [DOT.statement]


def test_without_code_all_rules_that_fit_are_recalled():
    failed = by_model("compile_error")
    context = Context(PROBLEM, "large", 1, history=(failed,), environment=HERE)
    assert len(recalled(context)) == 2
    assert recalled(context, most_tokens=0) == []


def test_a_model_that_has_not_failed_gets_few_rules():
    problem = dataclasses.replace(PROBLEM, source="class Model: ...  # a @ b")
    others = [dataclasses.replace(DOT, name=f"dot-{i}", statement="word " * 20) for i in range(9)]

    def told(*history):
        context = Context(problem, "large", 1, history=history, environment=HERE)
        return recalling([*others, RELU], Config(memory_tokens=200))(context)

    compiles, broken = by_model("not_run"), by_model("infra_error")
    few = told(compiles, broken, node("by the compiler"))
    assert 0 < len(few) <= len(told(by_model("wrong_output"))) / 3


def test_failures_of_other_steps_bring_no_rules_where_prompts_tell_nothing_of_them():
    problem = dataclasses.replace(PROBLEM, source="class Model: ...  # a @ b")
    others = [dataclasses.replace(DOT, name=f"dot-{i}", statement="word " * 20) for i in range(9)]
    failed = by_model("wrong_output")

    def told(settings, **steps):
        context = Context(problem, "large", 1, environment=HERE, **steps)
        given = Config(memory_tokens=200, **settings)
        return len(recalling([*others, RELU], given)(context))

    for settings in ({"policy": "ps"}, {"policy": "irb"}, {"tried": False}):
        alone = told(settings)
        assert told(settings, history=(failed,)) == alone
        assert told(settings, history=(failed,), pool=(failed,)) > alone
    assert told({"policy": "ps", "tried": True}, history=(failed,)) > told({"policy": "ps"})


def test_a_model_that_has_not_failed_gets_all_rules_about_a_language_that_is_little_known():
    problem = dataclasses.replace(PROBLEM, language="gluon")
    rules = [dataclasses.replace(rule, language="gluon") for rule in (DOT, RELU)]
    context = Context(problem, "large", 1, environment=HERE)
    assert len(recalling(rules, Config(memory_tokens=400))(context)) == 2


class TestSpeed:
    H200 = Platform("3.9.0", "sm_90", "NVIDIA H200")
    TILES = dataclasses.replace(
        DOT,
        name="tiles",
        kind="speed",
        statement="Take large tiles.",
        signature=Signature("slow"),
        holds=(H200,),
        gains=(Gain(H200, 2.345, (2.3, 2.4)),),
    )
    TOLD = "For speed: Take large tiles. (Measured: 2.3x on NVIDIA H200.)"
    RIGHT = dataclasses.replace(
        node("tl.dot(a, b)"), evaluation=Passed("fp32", 0.0, Estimate(1.0, "memory", "sm_90"))
    )

    def recalled(self, most_tokens=400, **context):
        given = Context(PROBLEM, "small", 1, environment=HERE, **context)
        return recalling([DOT, self.TILES], Config(memory_tokens=most_tokens))(given)

    def test_correct_code_gets_speed_rules(self):
        assert self.recalled(window=(self.RIGHT,)) == [DOT.statement, self.TOLD]
        assert self.recalled(pool=(self.RIGHT,)) == [DOT.statement, self.TOLD]

    def test_failing_code_gets_no_speed_rules(self):
        failed = node("tl.dot(a, b)")
        assert self.recalled(window=(self.RIGHT, failed)) == [DOT.statement]
        assert self.recalled(window=(failed,), pool=(self.RIGHT,)) == [DOT.statement]
        assert self.recalled() == [DOT.statement]

    def test_rules_to_keep_weights_are_not_told_where_none_may_be_kept(self):
        keeping = dataclasses.replace(self.TILES, topics=(*self.TILES.topics, "register_buffer"))
        recall = recalling([keeping], Config(memory_tokens=400))
        alone = dataclasses.replace(PROBLEM, device="cuda:0", target=None)
        shared = dataclasses.replace(alone, weights="weights.pt")
        trained = dataclasses.replace(alone, checks=Checks(backward=True))
        here = dataclasses.replace(HERE, gpu="NVIDIA H200", compute_capability="9.0")
        told = [
            recall(Context(problem, "small", 1, environment=here, window=(self.RIGHT,)))
            for problem in (alone, shared, trained)
        ]
        assert told == [[self.TOLD], [], []]

    def test_correctness_rules_come_before_speed_rules(self):
        assert self.recalled(window=(self.RIGHT,), most_tokens=60) == [DOT.statement]


def test_other_languages_have_no_rules():
    problem = dataclasses.replace(PROBLEM, language="cpp", target=None)
    assert recalled(Context(problem, "large", 1, environment=HERE)) == []


def test_lint_is_for_triton_and_for_this_version():
    broken = dataclasses.replace(RELU, matcher=Matcher(("tl.relu",)))
    head = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef kernel(x):\n"
    source = f"{head}    return tl.relu(x)\n"
    faults = linting([DOT, broken])
    context = Context(PROBLEM, "large", 1, environment=HERE)
    [fault] = faults(context, source)
    assert fault.startswith("Line 7: return tl.relu(x)\nThere is no tl.relu.")
    assert faults(context, head + "    return x\n") == []
    cpp = dataclasses.replace(PROBLEM, language="cpp", target=None)
    assert faults(dataclasses.replace(context, problem=cpp), source) == []
