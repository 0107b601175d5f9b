import random
import re

import pytest

from adaexplore.llm.providers import open_client
from adaexplore_lab.synthesize.author import CHANGES, SHOWN, TEMPLATES, TOPICS, Author, Unusable
from adaexplore_lab.synthesize.collect import attempts, collect
from adaexplore_lab.synthesize.grammar import grow
from adaexplore_lab.synthesize.task import STYLES, SyntheticTask
from llm_server import Say

MODULE = '''"""Row norms of a Gram matrix."""
import torch
from torch import nn

rows = 5


class Model(nn.Module):
    def forward(self, x):
        return torch.linalg.vector_norm(x @ x.T, dim=-1)


def get_inputs():
    return [torch.randn(rows, 3)]


def get_init_inputs():
    return []
'''
KNOWN = [grow(seed) for seed in range(4)]


@pytest.fixture
def llm(loopback, monkeypatch):
    loopback.reset(lambda messages: f"Here it is:\n```python\n{MODULE}```")
    loopback.use(monkeypatch)
    return loopback


@pytest.fixture
def author(llm):
    client = open_client("openai:gpt-5-mini")
    yield Author(client)
    client.close()


@pytest.mark.parametrize("style", STYLES)
def test_every_style_gives_a_task(llm, author, style):
    task = author.write(style, random.Random(0), KNOWN)
    assert isinstance(task, SyntheticTask)
    assert task.source == MODULE
    assert task.origin == style
    assert re.fullmatch(rf"{style.replace('-', '_')}_row_norms_of_[0-9a-f]{{6}}", task.name)
    [[system, asked]] = llm.conversations
    assert "get_init_inputs" in system["text"]
    shown = sum(known.source.strip() in asked["text"] for known in KNOWN)
    assert shown == SHOWN[style]
    assert any(c in asked["text"] for c in CHANGES) == (style == "mutation")
    assert any(t in asked["text"] for t in TOPICS) == (style == "creative")


def test_the_same_seed_asks_the_same(author):
    prompts = [author.prompt("composite", random.Random(5), KNOWN) for _ in range(2)]
    assert prompts[0].digest == prompts[1].digest


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("I would rather not.", "no fenced code block"),
        ("```python\nclass Model: ...\n```", "does not define get_inputs()"),
        ("```python\nclass Model(:\n```", "does not parse"),
    ],
)
def test_a_reply_without_a_task_is_told_why_and_asked_again(llm, author, reply, why):
    llm.script.append(Say(reply))
    assert isinstance(author.write("creative", random.Random(0), KNOWN), SyntheticTask)
    said = llm.conversations[-1]
    assert [m["role"] for m in said] == ["system", "user", "assistant", "user"]
    assert why in said[-1]["text"]


def test_who_never_answers_with_a_task_is_data(llm, author):
    llm.script.extend([Say("No."), Say("No.")])
    found = author.write("mutation", random.Random(0), KNOWN)
    assert found == Unusable("mutation", "The reply has no fenced code block.")


@pytest.mark.parametrize(("ending", "why"), [("length", "truncated"), ("refusal", "refused")])
def test_answers_that_end_otherwise_are_data(llm, author, ending, why):
    llm.script.append(Say("class Model", ending))
    found = author.write("creative", random.Random(0), KNOWN)
    assert found == Unusable("creative", f"the model's answer is {why}")


def test_every_template_is_shipped_and_used():
    from importlib.resources import files

    folder = files("adaexplore_lab.synthesize") / "templates"
    assert {file.name for file in folder.iterdir()} == set(TEMPLATES)


def test_styles_take_turns(author):
    stream = attempts(["grammar", "creative"], 3, author, [])
    origins = [next(stream).origin for _ in range(4)]
    assert origins == ["grammar", "creative", "grammar", "creative"]


def test_runs_of_different_seeds_share_no_task():
    streams = [attempts(["grammar"], seed, None, []) for seed in (0, 1)]
    one, other = ({next(stream).seed for _ in range(20)} for stream in streams)
    assert not one & other


class Refusing:
    """A validator that wants nothing."""

    def check(self, task):
        from adaexplore_lab.synthesize.validate import Validated

        return Validated(task, "no")


def test_collecting_gives_up_where_nothing_is_kept():
    stream = attempts(["grammar"], 0, None, [])
    assert len(list(collect(stream, Refusing(), 3))) == 30
