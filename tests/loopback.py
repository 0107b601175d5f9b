"""Real HTTP servers on loopback, in a thread of the test's own process."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn


@contextmanager
def in_thread(server: uvicorn.Server) -> Iterator[int]:
    """Run a server until the end of the block; yield its port."""
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
