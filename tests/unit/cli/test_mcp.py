"""The MCP server, with a real client over stdio and over HTTP."""

import json
import os
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

RIGHT = """```python
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(9):
            out = x.clamp(min=0) + 1
        return out
```"""
EAGER = Path(__file__).parents[2] / "eager"
COMMAND = [sys.executable, "-m", "adaexplore", "mcp"]


@asynccontextmanager
async def over_stdio():
    path = os.pathsep.join(filter(None, [str(EAGER), os.environ.get("PYTHONPATH", "")]))
    env = {**os.environ, "PYTHONPATH": path}
    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=env)
    async with stdio_client(parameters) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        yield session


@asynccontextmanager
async def over_http():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [*COMMAND, "--transport", "http", "--port", str(port)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None
                await anyio.sleep(0.1)
        url = f"http://127.0.0.1:{port}/mcp"
        async with streamable_http_client(url) as streams, ClientSession(*streams[:2]) as session:
            await session.initialize()
            yield session
    finally:
        process.terminate()
        process.wait()


async def call(session, tool, **arguments):
    """A tool's answer, or its error as text."""
    result = await session.call_tool(tool, arguments)
    text = result.content[0].text
    if result.is_error:
        return text
    return json.loads(text) if text.startswith(("{", "[")) else text


@pytest.mark.slow
@pytest.mark.parametrize("connect", [over_stdio, over_http])
def test_an_agent_makes_a_step(connect, problem, tmp_path):
    path, prompts = str(tmp_path / "run"), tmp_path / "prompts"
    prompts.mkdir()
    (prompts / "problem.j2").write_text("Mine: {{ problem.mode }}")

    async def agent():
        async with connect() as session:
            names = {tool.name for tool in (await session.list_tools()).tools}
            assert names == {
                "start_run", "next_prompt", "submit_reply", "results", "best_kernel",
            }  # fmt: skip
            started = await call(
                session, "start_run", problem=str(problem), run=path, steps=1, device="cpu",
                mode="eval", memory="none", settings=["reviser=false"], prompts=str(prompts),
            )  # fmt: skip
            assert (started["run"], started["steps_made"]) == (path, 0)
            assert "no correct kernel yet" in await call(session, "best_kernel", run=path)

            asked = await call(session, "next_prompt", run=path)
            assert asked["messages"][-1]["role"] == "user"
            assert "Mine: eval" in asked["messages"][-1]["text"]
            assert "all 1 steps are made or handed out" in json.dumps(
                done := await call(session, "next_prompt", run=path)
            )
            assert done["waiting"] == (await call(session, "results", run=path))["waiting"] == [1]
            assert await call(session, "next_prompt", run=path, ask=1) == asked
            assert "no ask 7" in await call(session, "next_prompt", run=path, ask=7)
            while asked["kind"] == "strategy":
                asked = await call(
                    session, "submit_reply", run=path, ask=asked["ask"], turn=asked["turn"],
                    reply="fusion: all in one.",
                )  # fmt: skip
            again = await call(
                session, "submit_reply", run=path, ask=asked["ask"], turn=asked["turn"],
                reply="no idea",
            )  # fmt: skip
            assert again["kind"] == "again"
            late = await call(
                session, "submit_reply", run=path, ask=asked["ask"], turn=asked["turn"],
                reply=RIGHT,
            )  # fmt: skip
            assert "has been answered already" in late
            judged = await call(
                session, "submit_reply", run=path, ask=again["ask"], turn=again["turn"],
                reply=RIGHT,
            )  # fmt: skip
            assert (judged["step"], judged["evaluation"]["status"]) == (1, "passed")
            assert judged["feedback"].startswith(judged["verdict"])

            assert (await call(session, "next_prompt", run=path))["done"]
            results = await call(session, "results", run=path)
            assert results["best"]["step"] == 1
            assert "class ModelNew" in await call(session, "best_kernel", run=path)

    anyio.run(agent)


def test_bad_input_is_an_error_in_one_line(tmp_path, problem):
    async def agent():
        async with over_stdio() as session:
            nowhere = await call(session, "results", run=str(tmp_path))
            assert "is not a run directory" in nowhere
            no_file = await call(session, "start_run", problem=str(tmp_path / "none.py"))
            assert "none.py" in no_file
            assert len(no_file.splitlines()) == 1

    anyio.run(agent)
