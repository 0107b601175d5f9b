import json

import pytest
from fake_client import FakeClient
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.client import Message, Prompt, Reply, Usage
from adaexplore.llm.replay import RecordingClient, ReplayClient, UnseenPromptError

MODEL = "openai:gpt-5-mini"
SYSTEM = Message("system", "You write kernels.\nBe brief.")


def prompt(text: str, label: str = "large") -> Prompt:
    return Prompt((SYSTEM, Message("user", text)), label)


def record(folder, text, *answers, model=MODEL):
    client = RecordingClient(FakeClient(*answers, model=model), folder)
    for _ in answers:
        client.ask(prompt(text))
    return client


def test_replies_are_replayed_equal(tmp_path):
    reply = Reply("a\nb\n", MODEL, "truncated", Usage(10, 20, 3, 0.5), 1.25, attempts=2)
    record(tmp_path, "hello", reply)

    assert ReplayClient(tmp_path, MODEL).ask(prompt("hello")) == reply


def test_a_repeated_prompt_gets_the_next_reply_and_finally_the_last(tmp_path):
    record(tmp_path, "hello", "one", "two")
    replay = ReplayClient(tmp_path, MODEL)

    assert [replay.ask(prompt("hello")).text for _ in range(4)] == ["one", "two", "two", "two"]


def test_later_recordings_follow_earlier_ones(tmp_path):
    record(tmp_path, "hello", "one")
    record(tmp_path, "hello", "two")
    replay = ReplayClient(tmp_path, MODEL)

    assert [replay.ask(prompt("hello")).text for _ in range(2)] == ["one", "two"]


def test_models_have_separate_files(tmp_path):
    record(tmp_path, "hello", "mini")
    record(tmp_path, "hello", "other", model="openrouter:some/other")

    assert ReplayClient(tmp_path, MODEL).ask(prompt("hello")).text == "mini"
    assert ReplayClient(tmp_path, "openrouter:some/other").ask(prompt("hello")).text == "other"


def test_the_label_does_not_matter(tmp_path):
    record(tmp_path, "hello", "one")

    assert ReplayClient(tmp_path, MODEL).ask(prompt("hello", label="small")).text == "one"


def test_files_are_readable(tmp_path):
    record(tmp_path, "hello\nµs", "x = 1\ny = 2")

    [path] = tmp_path.iterdir()
    text = path.read_text(encoding="utf-8")
    data = json.loads(text)
    assert path.name == prompt("hello\nµs").digest[:16] + ".openai-gpt-5-mini.json"
    assert data["prompt"][1] == {"role": "user", "text": ["hello", "µs"]}
    assert data["replies"][0]["text"] == ["x = 1", "y = 2"]
    assert '"µs"' in text
    assert text == json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def test_an_unseen_prompt_is_reported_with_the_nearest_and_the_difference(tmp_path):
    record(tmp_path, "a matmul\nof 4096\nin fp32", "one")
    record(tmp_path, "something\nelse\naltogether", "two")
    near = prompt("a matmul\nof 4096\nin fp32")

    with pytest.raises(UnseenPromptError) as caught:
        ReplayClient(tmp_path, MODEL).ask(prompt("a matmul\nof 8192\nin fp32", label="small.tuner"))

    said = str(caught.value)
    assert f"{near.digest[:16]}.openai-gpt-5-mini.json" in said
    assert "(small.tuner)" in said
    assert "line 6: recorded 'of 4096', asked 'of 8192'" in said
    assert "\n" not in said


def test_a_longer_prompt_differs_at_the_end(tmp_path):
    record(tmp_path, "hello", "one")

    with pytest.raises(UnseenPromptError, match=r"recorded '\(the end\)', asked 'more'"):
        ReplayClient(tmp_path, MODEL).ask(prompt("hello\nmore"))


def test_a_folder_without_calls_of_the_model_is_refused(tmp_path):
    record(tmp_path, "hello", "one")

    with pytest.raises(BadInputError, match="only of openai:gpt-5-mini"):
        ReplayClient(tmp_path, "anthropic:claude")
    with pytest.raises(BadInputError, match="nowhere: no such folder"):
        ReplayClient(tmp_path / "nowhere", MODEL)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"prompt": 1, "replies": [], "model": "m", "label": ""}',
        '{"prompt": [], "replies": [], "model": "m", "label": ""}',
        b"\xff\xfe",
    ],
)
def test_a_damaged_file_is_named(tmp_path, content):
    record(tmp_path, "hello", "one")
    [path] = tmp_path.iterdir()
    path.write_bytes(content if isinstance(content, bytes) else content.encode())

    with pytest.raises(BadInputError, match=path.name):
        ReplayClient(tmp_path, MODEL).ask(prompt("hello"))


def test_an_unusable_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(BadInputError, match="cannot record there"):
        RecordingClient(FakeClient(), tmp_path / "file")


@given(told=st.text(), answer=st.text())
def test_any_text_is_replayed_unchanged(tmp_path_factory, told, answer):
    folder = tmp_path_factory.mktemp("calls")
    record(folder, told, answer)

    assert ReplayClient(folder, MODEL).ask(prompt(told)).text == answer


def test_closing_closes_the_client(tmp_path):
    inner = FakeClient()

    RecordingClient(inner, tmp_path).close()

    assert inner.closed
