"""Contract of `adaexplore.core.protocols.client.ModelClient`, tested on every implementation.

A new implementation joins by a function below that makes it from the loopback server.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from adaexplore.core.protocols.client import Message, Prompt
from adaexplore.llm.budget import Budget, BudgetedClient
from adaexplore.llm.replay import RecordingClient, ReplayClient
from llm_server import Say


def user(text: str, label: str = "") -> Prompt:
    return Prompt((Message("user", text),), label)


LINES = "def f():\n\treturn 'µs'  # ≤ 1\n\n```\n\r\n"
CONVERSATION = Prompt(
    (
        Message("system", "be brief"),
        Message("user", "hello"),
        Message("assistant", "hi"),
        Message("user", "everything"),
    )
)
SPECIAL = {
    "cut short": Say("half an ans", "length"),
    "refuse": Say("I will not.", "refusal"),
    "silence": Say(""),
    "blanks": Say(" \n "),
    "lines": Say(LINES),
}
NUMBERED = [user(f"number {i}") for i in range(12)]
ALL = [CONVERSATION, *map(user, SPECIAL), *NUMBERED]


def answer(messages):
    last = messages[-1]["text"]
    if last == "everything":
        return "; ".join(f"{m['role']}: {m['text']}" for m in messages)
    return SPECIAL.get(last, f"You said: {last}")


def provider(name):
    def make(open_here, folder):
        return open_here(name)

    return pytest.param(make, id=name)


def budgeted(open_here, folder):
    return BudgetedClient(open_here("openai-chat:gpt-5-mini"), Budget(limit_usd=1.0))


def recording(open_here, folder):
    return RecordingClient(open_here("openai-chat:gpt-5-mini"), folder)


def replay(open_here, folder):
    first = RecordingClient(open_here("openai-chat:gpt-5-mini"), folder)
    for prompt in ALL:
        first.ask(prompt)
    return ReplayClient(folder, first.model)


@pytest.fixture(
    params=[
        provider("openai:gpt-5-mini"),
        provider("openai-chat:gpt-5-mini"),
        provider("anthropic:claude-haiku-4-5"),  # streams its reply
        provider("anthropic:some-other"),  # does not
        provider("openai-compatible:local/model"),
        budgeted,
        recording,
        replay,
    ]
)
def client(request, open_here, llm, tmp_path):
    llm.reset(answer)
    return request.param(open_here, tmp_path / "calls")


def test_model_is_the_provider_and_the_name(client):
    reply = client.ask(NUMBERED[0])

    provider, _, name = client.model.partition(":")
    assert provider
    assert name
    assert reply.model == client.model


def test_the_reply_is_the_text_of_the_model(client):
    reply = client.ask(NUMBERED[0])

    assert reply.text == "You said: number 0"
    assert reply.finish == "complete"
    assert reply.attempts == 1
    assert reply.latency_s >= 0


def test_tokens_are_counted(client):
    usage = client.ask(NUMBERED[0]).usage

    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (100, 20, 40)


def test_the_whole_conversation_reaches_the_model(client):
    reply = client.ask(CONVERSATION)

    assert reply.text == "system: be brief; user: hello; assistant: hi; user: everything"


def test_text_is_returned_unchanged(client):
    assert client.ask(user("lines")).text == LINES


def test_reply_cut_off_at_the_limit_is_truncated(client):
    reply = client.ask(user("cut short"))

    assert (reply.text, reply.finish) == ("half an ans", "truncated")


def test_refusal_is_data(client):
    reply = client.ask(user("refuse"))

    assert (reply.text, reply.finish) == ("I will not.", "refused")


@pytest.mark.parametrize("nothing", ["silence", "blanks"])
def test_a_reply_without_text_is_empty(client, nothing):
    assert client.ask(user(nothing)).finish == "empty"


def test_every_thread_gets_its_own_reply(client):
    with ThreadPoolExecutor(len(NUMBERED)) as threads:
        replies = list(threads.map(client.ask, NUMBERED))

    assert [reply.text for reply in replies] == [f"You said: number {i}" for i in range(12)]


def test_the_label_is_not_sent_to_the_model(client):
    assert client.ask(user("number 1", label="repair")).text == "You said: number 1"


def test_sampling_options_reach_the_provider(llm, open_here):
    options = {"temperature": 0.25, "max_tokens": 777}
    open_here("openai-chat:gpt-4.1", **options).ask(user("hello"))
    open_here("openai-chat:gpt-5-mini", reasoning="low").ask(user("hello"))

    plain, thinking = llm.bodies
    sent = plain.get("max_completion_tokens") or plain.get("max_tokens")
    assert (plain["temperature"], sent) == (0.25, 777)
    assert "reasoning_effort" not in plain
    assert thinking["reasoning_effort"] == "low"
    assert "temperature" not in thinking
