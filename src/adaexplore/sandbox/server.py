"""The fork server: a process that has torch and Triton loaded and forks workers in milliseconds.

It is started with `python -m adaexplore.sandbox.server FD ROOT PRELOAD...` by `ForkServer.start`,
never touches a GPU (a CUDA context does not survive a fork), and ends, removing its folder ROOT and
killing its workers, when the process that started it is gone.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import os
import selectors
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from adaexplore.sandbox.channel import Channel, ChannelClosedError
from adaexplore.sandbox.limits import Limits, clean_environment, die_with_parent

_REAP_S = 10.0


class Server:
    """Serves fork requests on its control channels, one at a time."""

    def __init__(self, control: Channel, root: Path) -> None:
        self._main = control
        self._root = root
        self._selector = selectors.DefaultSelector()
        self._workers: set[int] = set()
        self._exits: dict[int, int] = {}
        self._selector.register(control.fileno(), selectors.EVENT_READ, control)

    def serve(self) -> None:
        """Runs until the first control channel closes, then ends every worker."""
        try:
            while True:
                for key, _ in self._selector.select():
                    if not self._handle(key.data) and key.data is self._main:
                        return
        finally:
            for pid in self._workers:
                _kill_group(pid)
            shutil.rmtree(self._root, ignore_errors=True)

    def _handle(self, channel: Channel) -> bool:
        """Answers one request; False once that channel is closed."""
        try:
            request, fds = channel.receive_with_fds()
            if request["op"] == "spawn":
                channel.send({"pid": self._spawn(request, fds[0])})
            elif request["op"] == "reap":
                channel.send({"status": self._reap(request["pid"])})
            else:
                raise ValueError(f"unknown request {request['op']!r}")
        except ChannelClosedError:
            self._selector.unregister(channel.fileno())
            channel.close()
            return False
        return True

    def _spawn(self, request: dict[str, Any], channel_fd: int) -> int:
        ours, theirs = Channel.pair() if request["may_spawn"] else (None, None)
        pid = os.fork()
        if pid == 0:
            _run_worker(request, Channel.from_fd(channel_fd), theirs)
        os.close(channel_fd)
        self._workers.add(pid)
        if ours and theirs:
            theirs.close()
            self._selector.register(ours.fileno(), selectors.EVENT_READ, ours)
        return pid

    def _reap(self, pid: int) -> int | None:
        """The exit status of an ended worker (negative: the signal), None if it will not end."""
        deadline = time.monotonic() + _REAP_S
        while pid in self._workers:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self._workers.discard(pid)
                self._exits[pid] = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                return None
            else:
                time.sleep(0.001)
        return self._exits.pop(pid, None)


def _run_worker(request: dict[str, Any], channel: Channel, control: Channel | None) -> None:
    """The forked child: cuts itself off, runs the entry function, and never returns."""
    status = 1
    try:
        os.setsid()
        die_with_parent()
        folder = Path(request["folder"])
        _redirect(folder / "log.txt")
        kept = {channel.fileno(), *([control.fileno()] if control else [])}
        _close_all_but(kept)
        environment = clean_environment(str(folder)) | request["environment"]
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None  # the server's own was remembered
        os.chdir(folder)
        Limits(**request["limits"]).apply()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        gc.unfreeze()
        module, _, function = request["entry"].partition(":")
        getattr(importlib.import_module(module), function)(channel, control)
        status = 0
    except ChannelClosedError:
        status = 0
    except BaseException:  # noqa: BLE001 - the last frame of a process: report and exit
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _redirect(log: Path) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(null, 0)
    os.dup2(out, 1)
    os.dup2(out, 2)


def _close_all_but(kept: set[int]) -> None:
    start = 3
    for fd in sorted(kept):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _preload(names: list[str]) -> None:
    for name in names:
        path, _, function = name.partition(":")
        if importlib.util.find_spec(path.partition(".")[0]) is None:
            continue
        module = importlib.import_module(path)
        if function:
            getattr(module, function)()
    gc.collect()
    gc.freeze()  # keeps preloaded objects out of the children's collections, so pages stay shared


def main() -> None:
    """Entry point of the server process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the main process's to handle
    die_with_parent()
    control = Channel.from_fd(int(sys.argv[1]))
    _preload(sys.argv[3:])
    control.send({"ready": True})
    Server(control, Path(sys.argv[2])).serve()


if __name__ == "__main__":
    main()
