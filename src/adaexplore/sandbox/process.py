"""Client side of the fork server: start it, spawn workers, call them, end them."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from adaexplore.core.errors import InfrastructureError
from adaexplore.sandbox.channel import (
    MAX_MESSAGE_BYTES,
    MAX_REPLY_BYTES,
    Channel,
    ChannelClosedError,
)
from adaexplore.sandbox.family import ends_by_itself, family
from adaexplore.sandbox.gpus import seen
from adaexplore.sandbox.server import OWN_FOLDER
from adaexplore.sandbox.trees import remove_tree
from adaexplore.sandbox.walls import isolation, landlock
from adaexplore.sandbox.walls.limits import ResourceLimits, clean_environment
from adaexplore.sandbox.walls.paths import log_of
from adaexplore.sandbox.watchdog import INTERVAL_S, LimitExceededError, Watchdog

_PREFIX = "adaexplore-"
_START_S = 300.0  # importing torch from a cold disk can take minutes
_END_S = 20.0
_LOG_TAIL_BYTES = 16_384


class WorkerDiedError(RuntimeError):
    """A worker ended during a request.

    `status` is its exit code, the negative number of the signal that killed it, or None if the
    worker was ended because it closed or garbled its channel. `log` is the end of its output.
    """

    def __init__(self, status: int | None, log: str) -> None:
        self.status = status
        self.log = log
        super().__init__(describe_exit(status))

    def __reduce__(self) -> tuple[type[WorkerDiedError], tuple[int | None, str]]:
        """Let it travel between machines."""
        return type(self), (self.status, self.log)


def describe_exit(status: int | None) -> str:
    """Describe the end of a process in words."""
    if status is None:
        return "it closed or garbled its channel"
    if status >= 0:
        return f"it exited with code {status}"
    try:
        return f"it was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"it was killed by signal {-status}"


class Worker:
    """Running worker process and the channel to it.

    With `confined_to` the worker is confined, and every call enforces these limits.
    """

    def __init__(
        self,
        server: ForkServer,
        pid: int,
        channel: Channel,
        folder: Path,
        confined_to: ResourceLimits | None = None,
    ) -> None:
        self._server = server
        self._channel = channel
        self.pid = pid
        self.folder = folder
        self._confined_to = confined_to
        self._watch: Watchdog | None = None
        self._ending = threading.Lock()
        self._ended = False
        self._status: int | None = None

    def call(
        self,
        message: Mapping[str, Any],
        timeout_s: float | None,
        fds: Sequence[int] = (),
        *,
        make_way: Callable[[], float] = lambda: 0.0,
    ) -> dict[str, Any]:
        """Send a request and wait for its reply.

        `make_way` is called again and again meanwhile; the seconds that it returns do not count.
        Raises `TimeoutError`, `LimitExceededError` (the worker is then killed) or
        `WorkerDiedError`; and `InfrastructureError` for a worker that could not be confined.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        if self._confined_to and not self._watch:
            self._watch = self._begin_watch(self._confined_to)
        try:
            if self._watch:
                self._watch.give(fds)
            self._channel.send(dict(message), fds, timeout_s)
            if self._watch:
                deadline = self._attend(self._watch, deadline, make_way)
            most_bytes = MAX_REPLY_BYTES if self._confined_to else MAX_MESSAGE_BYTES
            return self._channel.receive(_left(deadline), most_bytes)
        except (TimeoutError, LimitExceededError):
            self.kill()
            raise
        except ChannelClosedError:
            status = self.kill()
            raise WorkerDiedError(status, self.log_tail()) from None

    @property
    def created_tasks(self) -> int:
        """The number of threads and processes that the worker has created, where it is known."""
        return self._watch.created if self._watch else 0

    def _begin_watch(self, limits: ResourceLimits) -> Watchdog:
        """Receive the supervisor's descriptor, which a confined worker sends first."""
        try:
            _, fds = self._channel.receive_with_fds(_START_S)
        except (ChannelClosedError, TimeoutError) as error:
            self.kill()
            lines = self.log_tail().strip().splitlines()
            raise InfrastructureError(
                f"a worker could not be confined: {lines[-1] if lines else error}"
            ) from None
        return Watchdog(self.pid, self.folder, limits, fds[0] if fds else None)

    def _attend(
        self, watch: Watchdog, deadline: float | None, make_way: Callable[[], float]
    ) -> float | None:
        """Supervise the worker until its reply begins; return the deadline, which may have moved.

        Raises `TimeoutError`, `LimitExceededError`, or `ChannelClosedError` if the worker has
        ended; its own forks may hold the channel open.
        """
        poll = select.poll()
        poll.register(self._channel.fileno(), select.POLLIN)
        poll.register(watch.ended, select.POLLIN)
        if watch.listener is not None:
            poll.register(watch.listener, select.POLLIN)
        next_look = time.monotonic() + INTERVAL_S
        while True:
            wait_s = min(max(next_look - time.monotonic(), 0.0), _left(deadline) or INTERVAL_S)
            ready = dict(poll.poll(1000 * wait_s))
            if self._channel.fileno() in ready:
                return deadline
            if watch.ended in ready:
                raise ChannelClosedError("the worker has ended")
            if watch.listener is not None and ready.get(watch.listener, 0) & select.POLLIN:
                watch.answer()
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                raise TimeoutError
            if now >= next_look:
                watch.look()
                looked_s = time.monotonic() - now
                next_look = now + max(INTERVAL_S, 10 * looked_s)  # looks take at most a tenth
                made_way_s = make_way()
                deadline = None if deadline is None else deadline + made_way_s

    def freeze(self) -> None:
        """Stop every thread of the worker and its descendants until `thaw`.

        No process can be born meanwhile, since the watchdog does not attend to it (see
        `sandbox.watchdog`).
        """
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the worker go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        reached: set[int] = set()
        while left := set(family(self.pid)) - reached:  # one may have been born meanwhile
            for pid in left:
                with contextlib.suppress(ProcessLookupError):  # the next request says so
                    os.kill(pid, number)
            reached |= left

    def kill(self) -> int | None:
        """End the worker and all its descendants, also while another thread calls it.

        Returns its status if it had ended by itself (see `WorkerDiedError`), else None.
        """
        with self._ending:
            if not self._ended:
                self._kill()
            return self._status

    def _kill(self) -> None:
        by_itself = ends_by_itself(self.pid)
        for end in (os.killpg, os.kill):  # a new worker may not have its own group yet
            with contextlib.suppress(ProcessLookupError):
                end(self.pid, signal.SIGKILL)
        self._channel.close()
        status = self._server.reap(self.pid)
        if self._watch:
            self._watch.close()  # last: unanswered requests to create processes block until then
        self._status = status if by_itself else None
        self._ended = True

    def end(self) -> None:
        """End the worker and remove its folder."""
        self.kill()
        remove_tree(self.folder)
        log_of(self.folder).unlink(missing_ok=True)

    def log_tail(self) -> str:
        """Return the end of the worker's output."""
        with contextlib.suppress(OSError), log_of(self.folder).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
            return log.read().decode(errors="replace")
        return ""


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)


def _sweep() -> None:
    """Remove the folders of servers that were killed together with their client processes."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}[0-9]*-*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            remove_tree(folder)


class ForkServer:
    """Handle of the fork server; `start` one, or receive one inside a trusted worker.

    Thread-safe.
    """

    def __init__(
        self, control: Channel, root: Path, process: subprocess.Popen[bytes] | None = None
    ) -> None:
        self._control = control
        self._process = process
        self.root = root
        self._numbers = itertools.count(1)
        self._talking = threading.Lock()

    @staticmethod
    def start(preload: Sequence[str] = ()) -> ForkServer:
        """Start the server process and make it import `preload`.

        An entry is "module", or "module:function" to call the function too; modules that are not
        installed are ignored. Raises `InfrastructureError` if the server does not start.
        """
        _sweep()
        if not landlock.version():  # then only this protects our environment, with its keys
            isolation.hide()
        root = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        ours, theirs = Channel.pair()
        own = root / OWN_FOLDER
        own.mkdir()
        environment = clean_environment(str(own))
        package_root = str(Path(__file__).parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, [package_root, environment.get("PYTHONPATH")])
        )
        with (root / "server.log").open("w+b") as log:
            process = subprocess.Popen(
                [
                    # -P: files in the working directory must not shadow modules
                    *(sys.executable, "-P", "-m", f"{__package__}.server"),
                    *(str(theirs.fileno()), str(root), *preload),
                ],
                pass_fds=[theirs.fileno()],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            theirs.close()
            server = ForkServer(ours, root, process)
            try:
                ours.receive(_START_S)
            except BaseException as error:  # Ctrl-C during a long import included: end the server
                process.kill()
                server.close()
                if not isinstance(error, ChannelClosedError | TimeoutError):
                    raise
                log.seek(0)
                lines = log.read().decode(errors="replace").strip().splitlines()
                raise InfrastructureError(
                    f"the worker server did not start: {lines[-1] if lines else error}"
                ) from error
        return server

    def spawn(
        self,
        entry: str,
        *,
        name: str,
        limits: ResourceLimits | None = None,
        environment: Mapping[str, str] | None = None,
        may_spawn: bool = False,
        confined: Literal["cpu", "gpu"] | None = None,
        readable: Sequence[str] = (),
    ) -> Worker:
        """Fork a worker that runs `entry` ("module:function") as `function(channel, control)`.

        The worker has its own process group and its own folder `name-<n>` under the server's root.
        It sees the GPUs that the caller sees, unless `environment` says otherwise. With `may_spawn`
        it also gets a control channel, from which `ForkServer(control, folder)` makes its own
        handle. With `confined` it may run untrusted code, which uses the CPU alone or NVIDIA's GPUs
        too, and may read the user's files in `readable`: see `isolation.confine`.
        """
        folder = self.root / f"{name}-{next(self._numbers)}"
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:  # the server and its folder are gone, or the disk is full
            raise InfrastructureError(f"no worker could be started: {error}") from error
        ours, theirs = Channel.pair()
        request = {
            "op": "spawn",
            "entry": entry,
            "folder": str(folder),
            "environment": {**seen(), **(environment or {})},
            "limits": (limits or ResourceLimits()).to_json(),
            "may_spawn": may_spawn,
            "confined": confined,
            "readable": list(readable),
        }
        reply = self._request(request, [theirs.fileno()])
        theirs.close()
        held_to = (limits or ResourceLimits()) if confined else None
        return Worker(self, reply["pid"], ours, folder, held_to)

    def reap(self, pid: int) -> int | None:
        """Reap an ended worker: exit code, negative signal number, or None if it hangs."""
        status: int | None = self._request({"op": "reap", "pid": pid})["status"]
        return status

    def close(self) -> None:
        """End the server, its workers and its folder; for a received handle, only the handle."""
        self._control.close()
        if self._process is None:
            return
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        remove_tree(self.root)

    def _request(self, request: dict[str, Any], fds: Sequence[int] = ()) -> dict[str, Any]:
        try:
            with self._talking:
                self._control.send(request, fds)
                reply = self._control.receive(_START_S)
        except (ChannelClosedError, TimeoutError) as error:
            raise InfrastructureError(f"the worker server is gone ({error})") from error
        if "failed" in reply:
            raise InfrastructureError(f"no worker could be started: {reply['failed']}")
        return reply
