"""Faults of servers: a retry succeeds, or one clear line."""

import asyncio
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from starlette.responses import JSONResponse, PlainTextResponse

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.client import ContextTooLongError, Message, ModelOutageError, Prompt
from adaexplore.llm.retry import RetryPolicy
from llm_server import KEY, cut, cut_json, hang, html, status

PROMPT = Prompt((Message("system", "be brief"), Message("user", "hello")))
PROTOCOLS = [
    "openai:gpt-5-mini",
    "openai-chat:gpt-5-mini",
    "anthropic:claude-haiku-4-5",
    "anthropic:some-other",
    "openai-compatible:local",
]
TRANSIENT = {
    "429": status(429, "slow down", retry_after="1"),
    "408": status(408),
    "409": status(409),
    "500": status(500),
    "529": status(529, "overloaded", type="overloaded_error"),
    "html": html(),
    "html 502": PlainTextResponse("<html>bad gateway</html>", 502),
    "cut": cut,
    "cut_json": cut_json(),
    "hang": hang,
    "text": PlainTextResponse("hello"),
    "other JSON": JSONResponse([1, 2]),
    "null": JSONResponse(None),
    "no answer in it": JSONResponse({"hello": 1}),
}


@pytest.fixture(params=PROTOCOLS)
def name(request):
    return request.param


@pytest.mark.parametrize("fault", TRANSIENT)
def test_a_transient_fault_is_retried(open_here, llm, waits, name, fault):
    client = open_here(name, call_timeout_s=0.3 if fault == "hang" else 20.0)
    undisturbed = client.ask(PROMPT)
    llm.script.append(TRANSIENT[fault])

    reply = client.ask(PROMPT)

    assert reply.text == undisturbed.text
    assert (reply.finish, reply.usage) == (undisturbed.finish, undisturbed.usage)
    assert reply.attempts >= 2  # a hang's short limit may strike the second attempt too
    assert len(waits) == reply.attempts - 1


def test_transient_faults_are_retried_repeatedly(open_here, llm, name):
    llm.script.extend([status(500), cut, html(), cut_json(), status(503)])

    assert open_here(name).ask(PROMPT).attempts == 6


def test_the_requested_wait_is_respected(open_here, llm, waits, name):
    llm.script.append(status(429, retry_after="17"))
    llm.script.append(
        status(503, retry_after=format_datetime(datetime.now(UTC) + timedelta(hours=1), True))
    )

    open_here(name, retries=RetryPolicy(total_s=7200)).ask(PROMPT)

    assert 17 <= waits[0] <= 18
    assert 3500 < waits[1] <= 3601


def test_a_requested_wait_beyond_the_limit_is_an_outage(open_here, llm, waits, name):
    llm.script.append(status(429, "come back tomorrow", retry_after="86400"))

    with pytest.raises(ModelOutageError, match=r"come back tomorrow; it asks to wait 86400 s"):
        open_here(name).ask(PROMPT)
    assert waits == []


def test_an_outage_names_model_attempts_and_reason(open_here, llm, name):
    llm.script.extend([status(500, "on fire")] * 3)

    with pytest.raises(ModelOutageError) as caught:
        open_here(name, retries=RetryPolicy(attempts=3)).ask(PROMPT)

    said = str(caught.value)
    assert "\n" not in said
    for part in (name, "3 attempts", "500", "on fire"):
        assert part in said


@pytest.mark.parametrize("said", ["x" * 100_000, "a\nb\x00\x1b[31m" * 9999])
def test_a_server_message_is_quoted_in_one_short_line(open_here, llm, name, said):
    llm.script.append(status(400, said))

    with pytest.raises(BadInputError) as caught:
        open_here(name).ask(PROMPT)

    assert len(str(caught.value)) < 320
    assert str(caught.value).isprintable()


def test_an_unreachable_address_is_an_outage(open_here, monkeypatch):
    monkeypatch.setenv("ADAEXPLORE_BASE_URL", "http://127.0.0.1:9/v1")

    with pytest.raises(ModelOutageError, match=r"127\.0\.0\.1:9"):
        open_here("openai-compatible:local", retries=RetryPolicy(attempts=2)).ask(PROMPT)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (status(400, "temperature is\nnot supported"), "temperature is not supported"),
        (status(422, "messages: bad"), "messages: bad"),
        (status(404, "nothing here"), "no such model"),
        (status(402, "pay first", type="billing_error"), "no credit"),
    ],
)
def test_an_error_of_the_user_is_not_retried(open_here, llm, waits, name, fault, says):
    llm.script.append(fault)

    with pytest.raises(BadInputError, match=says) as caught:
        open_here(name).ask(PROMPT)

    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(llm.conversations) == 1
    assert waits == []


def test_a_refused_key_is_named_and_not_shown(open_here, llm, name, caplog):
    caplog.set_level("INFO")
    variable = {"openai": "OPENAI", "anthropic": "ANTHROPIC"}.get(
        name.partition(":")[0].removesuffix("-chat"), "ADAEXPLORE"
    )
    llm.script.append(status(401, f"bad key {KEY}", type="authentication_error"))
    client = open_here(name)

    with pytest.raises(BadInputError, match=f"{variable}_API_KEY") as caught:
        client.ask(PROMPT)

    assert KEY not in f"{caught.value!r} {client!r} {vars(client)} {caplog.text}"


def test_a_key_in_a_providers_message_is_masked(open_here, llm, name):
    llm.script.append(status(400, f"cannot read the header 'Bearer {KEY}'"))

    with pytest.raises(BadInputError, match=r"Bearer \*\*\*"):
        open_here(name).ask(PROMPT)


@pytest.mark.parametrize(
    "fault",
    [
        status(400, "This model's maximum context length is 8 tokens"),
        status(400, "prompt is too long: 20 tokens > 8", type="invalid_request_error"),
        status(413, "too large", type="request_too_large"),
    ],
)
def test_an_overlong_prompt_has_its_own_error(open_here, llm, name, fault):
    llm.script.append(fault)

    with pytest.raises(ContextTooLongError, match="too long"):
        open_here(name).ask(PROMPT)


def test_a_misspelt_model_gets_suggestions(open_here, llm):
    llm.script.append(status(404, "model: claude-haiku-4-6", type="not_found_error"))

    with pytest.raises(BadInputError, match="anthropic:claude-haiku-4-5"):
        open_here("anthropic:claude-haiku-4-6").ask(PROMPT)


def test_concurrency_at_a_provider_is_bounded(open_here, llm):
    crowd = Crowd()
    llm.script.extend([crowd] * 12)
    clients = [open_here("openai-compatible:a", concurrency=2) for _ in range(2)]

    with ThreadPoolExecutor(12) as threads:
        replies = list(threads.map(lambda i: clients[i % 2].ask(PROMPT), range(12)))

    assert {reply.text for reply in replies} == {"You said: hello"}
    assert crowd.most == 2


class Crowd:
    """A fault that counts who is inside."""

    def __init__(self) -> None:
        self.inside = self.most = 0
        self._counting = threading.Lock()

    async def __call__(self, scope, receive, send) -> None:
        with self._counting:
            self.inside += 1
            self.most = max(self.most, self.inside)
        await asyncio.sleep(0.02)
        with self._counting:
            self.inside -= 1
        await status(500)(scope, receive, send)


def test_closing_aborts_the_calls_of_other_threads(llm, open_here, eventually):
    llm.script.append(hang)
    client = open_here("openai-chat:gpt-5-mini")
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(client.ask, Prompt((Message("user", "hello"),)))
        assert eventually(lambda: not llm.script)
        client.close()
        assert isinstance(asked.exception(20.0), CancelledError)


def test_a_server_that_requires_a_missing_key_is_reported(open_here, llm, monkeypatch):
    monkeypatch.delenv("ADAEXPLORE_API_KEY")
    client = open_here("openai-compatible:mine")
    assert client.ask(PROMPT).text

    llm.script.append(status(401, "who are you?", type="authentication_error"))
    with pytest.raises(BadInputError) as caught:
        client.ask(PROMPT)
    assert "refuses calls without a key (401); set ADAEXPLORE_API_KEY" in str(caught.value)
