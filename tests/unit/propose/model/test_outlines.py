import pytest

from adaexplore.llm.code import ReplyError
from adaexplore.propose.model.outlines import read_outlines


def read(reply, most=9):
    return [(outline.name, outline.text) for outline in read_outlines(reply, most)]


@pytest.mark.parametrize(
    "reply",
    [
        "1. Split-K: Two kernels.\n2. One pass: One kernel.",
        "Here they are.\n\n1) **Split-K**: Two kernels.\n\n2) `One pass`: One kernel.",
        "## 1. Split-K\nTwo kernels.\n\n## 2. One pass\nOne kernel.",
        "# Structures\n\n**1. Split-K**\n\nTwo kernels.\n\n**2. One pass**\n\nOne kernel.",
        "### Structure 1: Split-K\nTwo kernels.\n### Structure 2: One pass\nOne kernel.",
        "**Split-K** — Two kernels.\n\n**One pass** — One kernel.",
        "- Split-K: Two\n  kernels.\n- One pass: One\n  kernel.",
        "1. Name: Split-K\n   Two kernels.\n2. Name: One pass\n   One kernel.",
        "1. Split-K: Two kernels.\n```python\n1. x: y\n```\n2. One pass: One kernel.",
    ],
)
def test_reads_a_list_in_any_form(reply):
    assert read(reply) == [("Split-K", "Two kernels."), ("One pass", "One kernel.")]


def test_of_a_nested_list_the_numbers_count():
    reply = "1. Split-K\n   - kernels: two\n   - precision: tf32\n2. One pass: one"
    assert read(reply)[0] == ("Split-K", "- kernels: two - precision: tf32")


def test_reads_at_most_as_many_as_asked_for_and_no_name_twice():
    reply = "1. Split-K: a\n2. split-k: again\n3. One pass: b\n4. Persistent: c"
    assert read(reply, 2) == [("Split-K", "a"), ("One pass", "b")]


def test_a_line_without_a_name_is_one():
    assert read("1. " + "fuse all " * 20)[0][0].startswith("fuse all fuse all")
    assert read("1. fuse all\n2. split it") == [("fuse all", ""), ("split it", "")]


@pytest.mark.parametrize("reply", ["I have no idea.", "```python\n1. x: y\n```", "1.\n2.\n"])
def test_refuses_a_reply_without_a_list(reply):
    with pytest.raises(ReplyError, match="no list of structures"):
        read_outlines(reply, 2)
