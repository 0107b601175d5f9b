"""What tests of several packages ask."""

import pytest

from llm_server import LlmServer


@pytest.fixture(scope="session")
def loopback():
    """A language model behind real HTTP; `reset` it before use."""
    with LlmServer() as server:
        yield server
