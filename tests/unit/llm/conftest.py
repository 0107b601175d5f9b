"""A fake model server on loopback, and clients that never wait."""

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
    """Waits of the clients of this test, in seconds."""
    return []


@pytest.fixture
def open_here(llm, waits):
    """Open a client of the loopback server that records its waits instead of sleeping."""
    opened = []

    def open_here(name, **options):
        client = open_client(name, options=ClientOptions(**options), sleep=waits.append)
        opened.append(client)
        return client

    yield open_here
    for client in opened:
        client.close()
