"""A language model on loopback: OpenAI's and Anthropic's protocols over real HTTP, with faults.

`with LlmServer(answer) as server` serves OpenAI's Chat Completions and Responses and Anthropic's
Messages below `server.url`; `server.use(monkeypatch)` points the clients of this process at it.
`answer` gets the conversation as `{"role", "text"}` dicts and gives the reply's text, or a `Say`
for one that ends otherwise. What lies in `server.script` comes first, one entry a request: a `Say`,
a fault (any ASGI application: `status`, `html`, `cut`, `cut_json`, `hang`), or None for no fault.
"""

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from loopback import in_thread

KEY = "sk-loopback-0123456789"
_CERTIFICATE = Path(__file__).with_name("one_certificate.pem")
"""Every client reads the authorities that it trusts, 40 ms for those of the system. Nobody has the
key of this one, and the server speaks plain HTTP."""
Messages = list[dict[str, str]]


@dataclass(frozen=True)
class Say:
    """A reply and how it ends."""

    text: str
    ending: Literal["stop", "length", "refusal"] = "stop"


class LlmServer:
    def __init__(self, answer: Callable[[Messages], "str | Say"] | None = None) -> None:
        self.reset(answer)
        app = Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/responses", self._responses, methods=["POST"]),
                Route("/v1/messages", self._anthropic, methods=["POST"]),
            ]
        )
        config = uvicorn.Config(
            app, host="127.0.0.1", port=0, log_level="critical", timeout_graceful_shutdown=1
        )
        self._running = in_thread(uvicorn.Server(config))

    def reset(self, answer: Callable[[Messages], "str | Say"] | None = None) -> None:
        """Forgets the script and what was asked, and answers from now on by `answer`."""
        self.answer = answer or (lambda messages: f"You said: {messages[-1]['text']}")
        self.script: deque = deque()
        self.conversations: list[Messages] = []
        """What was asked, faulty answers included, in order of arrival."""
        self.bodies: list[dict] = []
        """The requests themselves, with their options."""

    def __enter__(self) -> "LlmServer":
        self._port = self._running.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._running.__exit__(*error)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def use(self, monkeypatch) -> None:
        """Has clients opened from now on ask this server, whatever provider they name."""
        for provider in ("OPENAI", "ANTHROPIC", "ADAEXPLORE"):
            monkeypatch.setenv(f"{provider}_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{self.url}/v1")
        monkeypatch.setenv("ADAEXPLORE_BASE_URL", f"{self.url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", self.url)
        monkeypatch.setenv("SSL_CERT_FILE", str(_CERTIFICATE))

    def _reply(self, messages: Messages):
        self.conversations.append(messages)
        scripted = self.script.popleft() if self.script else None
        reply = self.answer(messages) if scripted is None else scripted
        return Say(reply) if isinstance(reply, str) else reply

    async def _chat(self, request: Request):
        body = await request.json()
        self.bodies.append(body)
        reply = self._reply(_conversation(body["messages"]))
        if not isinstance(reply, Say):
            return reply
        refused = reply.ending == "refusal"
        message = {"role": "assistant", "content": None if refused else reply.text}
        if refused:
            message["refusal"] = reply.text
        return JSONResponse(
            {
                "id": "chat-1",
                "object": "chat.completion",
                "created": 1,
                "model": body["model"],
                "choices": [
                    {
                        "index": 0,
                        "message": message,
                        "finish_reason": "length" if reply.ending == "length" else "stop",
                    }
                ],
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 20,
                    "total_tokens": 120,
                    "prompt_tokens_details": {"cached_tokens": 40},
                },
            }
        )

    async def _responses(self, request: Request):
        body = await request.json()
        self.bodies.append(body)
        reply = self._reply(_conversation(body["input"], body.get("instructions")))
        if not isinstance(reply, Say):
            return reply
        truncated = reply.ending == "length"
        said = (
            {"type": "refusal", "refusal": reply.text}
            if reply.ending == "refusal"
            else {"type": "output_text", "text": reply.text, "annotations": []}
        )
        return JSONResponse(
            {
                "id": "resp-1",
                "object": "response",
                "created_at": 1,
                "model": body["model"],
                "status": "incomplete" if truncated else "completed",
                "incomplete_details": {"reason": "max_output_tokens"} if truncated else None,
                "output": [
                    {
                        "id": "msg-1",
                        "type": "message",
                        "role": "assistant",
                        "status": "completed",
                        "content": [said],
                    }
                ],
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": [],
                "usage": {
                    "input_tokens": 100,
                    "input_tokens_details": {"cached_tokens": 40},
                    "output_tokens": 20,
                    "output_tokens_details": {"reasoning_tokens": 0},
                    "total_tokens": 120,
                },
            }
        )

    async def _anthropic(self, request: Request):
        body = await request.json()
        self.bodies.append(body)
        reply = self._reply(_conversation(body["messages"], body.get("system")))
        if not isinstance(reply, Say):
            return reply
        stop = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"}[reply.ending]
        usage = {"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 20}
        block = {"type": "text", "text": reply.text}
        message = {
            "id": "msg-1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [block] if reply.text else [],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }
        if not body.get("stream"):
            return JSONResponse(message)
        start = {**message, "content": [], "stop_reason": None}
        events = [
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": {**block, "text": ""}},
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": reply.text},
            },
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": stop, "stop_sequence": None},
                "usage": {"output_tokens": 20},
            },
            {"type": "message_stop"},
        ]
        stream = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
        return Response(stream, media_type="text/event-stream")


def status(number: int, message: str = "so it goes", retry_after: str | None = None, **error):
    """An error in the providers' form."""
    return JSONResponse(
        {"type": "error", "error": {"message": message, **error}},
        number,
        headers={} if retry_after is None else {"Retry-After": retry_after},
    )


def html() -> Response:
    """A gateway's page where JSON belongs, with status 200."""
    return HTMLResponse("<html><body>Welcome to the proxy</body></html>")


def cut_json() -> Response:
    """A whole body, but half an answer."""
    return Response('{"id": "chat-1", "choices": [{"ind', media_type="application/json")


async def cut(scope, receive, send) -> None:
    """The connection ends in the middle of the body."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"id": "ch', "more_body": True})


async def hang(scope, receive, send) -> None:
    """No answer for as long as the client waits."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _conversation(turns, system=None) -> Messages:
    """Any protocol's conversation in one form."""
    if isinstance(turns, str):
        turns = [{"role": "user", "content": turns}]
    first = [{"role": "system", "text": _text(system)}] if system else []
    return first + [
        {"role": "system" if turn["role"] == "developer" else turn["role"], "text": _text(turn)}
        for turn in turns
    ]


def _text(turn) -> str:
    content = turn["content"] if isinstance(turn, dict) else turn
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)
