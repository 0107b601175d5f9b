"""adapt --language gluon without a GPU: what compiles is neither right nor a failure."""

import pytest

from adaexplore.core.rule import Matcher
from adaexplore.memory.files import load_memory
from adaexplore.run.learning import learn
from adaexplore.store import read_run
from elementwise import reference

COMPILES = """\
import torch
import triton
from torch import nn
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def kernel(x_ptr, y_ptr, n, num_warps: gl.constexpr):
    at = gl.arange(0, 1024, layout=gl.BlockedLayout([4], [32], [num_warps], [0]))
    x = gl.load(x_ptr + at, mask=at < n)
    gl.store(y_ptr + at, gl.maximum(x, 0.0), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(1,)](x, y, x.numel(), num_warps=4)
        return y
"""
FAILS = COMPILES.replace("gl.maximum(x, 0.0)", "gl.relu(x)")
RULE = f"""NAME: no relu
KIND: compile
STATEMENT: There is no `gl.relu`: call `gl.maximum` with zero.
TOPICS: gl.relu, gl.maximum
```python
{COMPILES}```
"""


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Reduce little: reduction is tested elsewhere."""
    monkeypatch.setattr(learn, "MAX_EVALUATIONS", 2)


def test_a_failure_to_compile_becomes_a_rule_about_gluon(adaexplore, tmp_path):
    folder, memory, work = (tmp_path / name for name in ("tasks", "memory.toml", "work"))
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.py").write_text(reference("torch.relu(x)"))
    words = ("adapt", "--language", "gluon", "--problems", folder, "-o", memory, "--work", work)
    words += ("--target", "sm_90")

    assert "2 prompts wait" in adaexplore(*words).out
    first = (work / "asks" / "a" / "1.1.md").read_text()
    assert "Every kernel must also do this: copy every tile" in first
    assert "interpreter" not in first
    for name, source in (("a", COMPILES), ("b", FAILS)):
        (work / "asks" / name / "1.1.reply.md").write_text(f"Try.\n```python\n{source}```\n")

    said = adaexplore(*words).out
    assert "a: compiles, not run" in said
    assert "0 of 1 tasks came out right; 1 compile and were not run" in said
    assert "1 prompt waits" in said  # the repair of b; nothing of a is to be repaired
    with read_run(work / "runs" / "a") as run:
        assert [node.evaluation.status for node in run.store.nodes()] == ["not_run"]

    [question] = (work / "rules").glob("*.1.md")
    asked = question.read_text()
    assert "for everybody who writes Gluon kernels" in asked
    assert "it is compiled, not run" in asked
    question.with_name(f"{question.stem}.reply.md").write_text(RULE)
    assert "1 new rules" in adaexplore(*words).out
    [rule] = load_memory(memory)
    assert (rule.language, rule.tasks, len(rule.holds)) == ("gluon", ("b",), 1)
    assert rule.witness == FAILS
    assert rule.matcher == Matcher(("gl.relu",))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("cuda",), "--language cuda: rules are about Triton and languages that it compiles"),
        (("cutedsl",), "that it compiles, not cutedsl"),
        (("gluon", "--set", "learning=published"), "unchecked rules are about Triton"),
    ],
)
def test_what_cannot_be_learned_is_said_in_one_line(adaexplore, tmp_path, words, complaint):
    language, *others = words
    told = adaexplore("adapt", "--language", language, "--problems", tmp_path, *others)
    assert complaint in told.complaint
