import time

import pytest
from services import running

from adaexplore.serve.guard import TimedProtocol


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service that accepts jobs and begins none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TimedProtocol, "headers_s", 0.5)
        with running(tmp_path_factory.mktemp("serve"), most_bytes=200_000) as service:
            yield service


@pytest.fixture
def fresh_user(service):
    """The token of a user without jobs."""
    return service.new_token(f"user{time.monotonic_ns()}")
