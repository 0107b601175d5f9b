"""Problems that need other code and files of the user, loaded on the tests' server."""

import pytest

from adaexplore.problems import access


class Shared:
    """A fork server that outlives who closes it."""

    def __init__(self, server):
        self.spawn = server.spawn

    def close(self):
        pass


@pytest.fixture
def on_server(server, monkeypatch):
    monkeypatch.setattr(access.ForkServer, "start", lambda _: Shared(server))
