"""A Ray cluster of its own: nodes of this machine with few resources, started as users start them.

Its token is a file of its own. All nodes end with `close`, and nothing else does.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_RAY = Path(sys.executable).with_name("ray")
_SMALL = ("--num-gpus=0", "--object-store-memory=80000000", "--disable-usage-stats", "--block")
_START_S = 60.0


class Node:
    """A node: the process that started it, and the files of its standard output."""

    def __init__(self, words, environment, log: Path) -> None:
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [_RAY, "start", *words, *_SMALL],
                env=environment,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_S
        while b"--block" not in log.read_bytes():
            assert self._process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)

    def devices(self) -> list[int]:
        """The processes that hold a device here."""
        [raylet] = [p for p in children(self._process.pid) if "raylet/raylet" in command(p)]
        return [pid for pid in children(raylet) if command(pid).startswith("ray::Device")]

    def crash(self) -> None:
        """End the node's own process with no chance to say anything."""
        for pid in children(self._process.pid):
            if "raylet/raylet" in command(pid):
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """End all processes of the node; those of candidates end with them."""
        for pid in (self._process.pid, *descendants(self._process.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()


class RayCluster:
    """A head without devices; `add` nodes with them."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ray-"))  # its sockets need a short path
        token = self.folder / "token"
        token.touch(mode=0o600)
        token.write_text(secrets.token_hex(32))
        self.environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
        self._nodes: list[Node] = []
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.start_head()

    def start_head(self) -> None:
        """Start a head at the address; nodes of an earlier head end, for they do not join it."""
        for node in self._nodes:
            node.stop()
        head = ("--head", f"--port={self.port}", "--include-dashboard=false", "--num-cpus=0")
        self._head = self._start(*head, f"--temp-dir={self.folder}")

    def add(self, cpus: int = 1, **environment: str) -> Node:
        """Start a node with that many devices."""
        return self._start(f"--address={self.address}", f"--num-cpus={cpus}", **environment)

    def kill_head(self) -> None:
        """End the head, and leave the nodes to themselves."""
        self._head.stop()

    def close(self) -> None:
        for node in reversed(self._nodes):
            node.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, *words: str, **environment: str) -> Node:
        given = {**os.environ, **self.environment, "PYTHONPATH": _source(), **environment}
        log = self.folder / f"node-{len(self._nodes)}.log"
        self._nodes.append(Node(words, given, log))
        return self._nodes[-1]


def disconnect() -> None:
    """Leave the cluster that this process joined."""
    import ray

    ray.shutdown()


def _source() -> str:
    import adaexplore

    return str(Path(adaexplore.__file__).parents[1])


def free_port() -> int:
    """A port below those that Ray gives to its workers."""
    for port in range(7400 + os.getpid() % 500, 9000):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("", port))
            return port
    raise AssertionError("no port is free")


def children(pid: int) -> list[int]:
    """The processes that any thread of a process started."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def descendants(pid: int) -> list[int]:
    return [one for child in children(pid) for one in (child, *descendants(child))]


def command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""
