"""A real service on loopback, in this process or in its own."""

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx

from adaexplore.serve.accounts import Account, add_token
from adaexplore.serve.app import ServiceSettings
from adaexplore.serve.client import Client
from adaexplore.serve.http.listening import Listening
from adaexplore.serve.http.server import uvicorn_server
from adaexplore.serve.tables import open_folder
from loopback import in_thread

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1

def get_inputs():
    return [torch.randn(64, 64)]
"""
RIGHT = PROBLEM.partition("def get_inputs")[0].replace("Model", "ModelNew")
EVERYTHING = Account("alice", ("evaluate", "search", "campaign", "models", "metrics"))


class Service:
    """A running service, with what tests ask of it."""

    def __init__(self, folder: Path, port: int, engine) -> None:
        self.folder, self.port, self.engine = folder, port, engine
        self.url = f"http://127.0.0.1:{port}"
        self.token = self.new_token()
        self._http = httpx.Client(base_url=self.url, timeout=20)

    def new_token(self, user: str = "alice", **changes) -> str:
        return add_token(self.engine, replace(EVERYTHING, user=user, **changes))

    def client(self, token: str | None = None) -> Client:
        return Client(self.url, token or self.token, patience_s=5.0)

    def ask(self, method: str, path: str, token: str | None = None, **arguments) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token or self.token}"}
        headers |= arguments.pop("headers", {})
        return self._http.request(method, path, headers=headers, **arguments)


@contextmanager
def running(folder: Path, port: int = 0, **settings):
    """Serve a folder until the end of the block."""
    engine = open_folder(folder, settings.get("store", ""), serving=True)
    chosen = ServiceSettings(folder, **{"at_once": 0, "body_s": 1.0} | settings)
    server = uvicorn_server(chosen, Listening(port=port), engine)
    with in_thread(server) as port:
        yield Service(folder, port, engine)
    engine.dispose()
