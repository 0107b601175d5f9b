"""A language model on loopback, and clients that ask it without ever waiting."""

import pytest

from adaexplore.llm.options import ClientOptions
from adaexplore.llm.providers import open_client


@pytest.fixture
def llm(loopback, monkeypatch):
    """The loopback server, fresh, and where every provider's client will look for it."""
    loopback.reset()
    loopback.use(monkeypatch)
    return loopback


@pytest.fixture
def waits():
    """What the clients of this test would have slept, in seconds."""
    return []


@pytest.fixture
def open_here(llm, waits):
    """Opens a client that asks the loopback server and only notes its waits."""
    opened = []

    def open_here(name, **options):
        client = open_client(name, options=ClientOptions(**options), sleep=waits.append)
        opened.append(client)
        return client

    yield open_here
    for client in opened:
        client.close()
