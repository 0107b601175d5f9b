"""Fork server: a process that has torch and Triton loaded and forks workers in milliseconds.

It is started with `python -m adaexplore.sandbox.server FD ROOT PRELOAD...` by `ForkServer.start`,
and never touches a GPU (a CUDA context does not survive a fork). When the process that started it
ends, it kills its workers with all their descendants, removes its folder ROOT, and ends.
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

from adaexplore.sandbox import cores
from adaexplore.sandbox.channel import Channel, ChannelClosedError
from adaexplore.sandbox.family import children
from adaexplore.sandbox.trees import remove_tree
from adaexplore.sandbox.walls import isolation, namespaces
from adaexplore.sandbox.walls.limits import (
    STRANGERS,
    ResourceLimits,
    adopt_orphans,
    allow_many_files,
    clean_environment,
    die_with_parent,
)
from adaexplore.sandbox.walls.paths import log_of, programs

OWN_FOLDER = "server"
"""Folder, under ROOT, of the server's own compilations; its workers may read it."""

_REAP_S = 10.0


class Server:
    """Serves fork requests on its control channels, one at a time."""

    def __init__(self, control: Channel, root: Path) -> None:
        self._main = control
        self._root = root
        self._readable: list[str] = []  # for every confined worker
        self._selector = selectors.DefaultSelector()
        self._workers: dict[int, Channel] = {}  # by pid: the control channel of the request
        self._exits: dict[int, int] = {}
        self._selector.register(control.fileno(), selectors.EVENT_READ, control)

    def preload(self, names: list[str]) -> None:
        """Import modules, and call functions that are given as "module:function".

        Workers may read a folder that such a function returns.
        """
        for name in names:
            path, _, function = name.partition(":")
            if importlib.util.find_spec(path.partition(".")[0]) is None:
                continue
            module = importlib.import_module(path)
            if function and (folder := getattr(module, function)()) is not None:
                self._readable.append(str(folder))
        gc.collect()
        gc.freeze()  # the children's collections skip preloaded objects, so pages stay shared

    def confine(self, folder: str) -> None:
        """Confine all workers to come, whose problems are by strangers; they may read `folder`."""
        isolation.confine_references(self._root, [folder, *self._readable])

    def serve(self) -> None:
        """Serve until the first control channel closes."""
        while True:
            for key, _ in self._selector.select():
                if not self._handle(key.data) and key.data is self._main:
                    return

    def end(self) -> None:
        """End every worker with its descendants, and remove the folder."""
        for pid in self._workers:
            _kill_group(pid)
        self._workers.clear()
        self._end_orphans()
        remove_tree(self._root)

    def _handle(self, channel: Channel) -> bool:
        """Answer one request; return false once the channel is closed."""
        try:
            request, fds = channel.receive_with_fds()
            if request["op"] == "spawn":
                channel.send(self._spawn(request, fds[0], channel))
            elif request["op"] == "reap":
                channel.send({"status": self._reap(request["pid"])})
            else:
                raise ValueError(f"unknown request {request['op']!r}")
        except ChannelClosedError:
            self._selector.unregister(channel.fileno())
            channel.close()
            self._end_workers_of(channel)
            return False
        return True

    def _spawn(self, request: dict[str, Any], channel_fd: int, owner: Channel) -> dict[str, Any]:
        ours, theirs = Channel.pair() if request["may_spawn"] else (None, None)
        server_pid = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:  # too many processes, or no memory for one more
            return {"failed": str(error)}
        if pid == 0:
            request["caches"] = str(self._root / OWN_FOLDER)
            request["readable"] += self._readable
            _run_worker(request, server_pid, Channel.from_fd(channel_fd), theirs)
        os.close(channel_fd)
        self._workers[pid] = owner
        if ours and theirs:
            theirs.close()
            self._selector.register(ours.fileno(), selectors.EVENT_READ, ours)
        return {"pid": pid}

    def _reap(self, pid: int) -> int | None:
        """Return the exit status of an ended worker (negative: the signal), None if it hangs."""
        deadline = time.monotonic() + _REAP_S
        while pid in self._workers:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                del self._workers[pid]
                self._exits[pid] = os.waitstatus_to_exitcode(status)
                self._end_orphans()
                namespaces.sweep_shared_memory(list(self._workers))
            elif time.monotonic() > deadline:
                return None
            else:
                time.sleep(0.001)
        return self._exits.pop(pid, None)

    def _end_workers_of(self, owner: Channel) -> None:
        """End the workers that a lost worker had requested."""
        for pid in [pid for pid, channel in self._workers.items() if channel is owner]:
            _kill_group(pid)
            self._reap(pid)

    def _end_orphans(self) -> None:
        """Kill the descendants of ended workers, in any session.

        Such a process is an adopted child of this one; after its death its own children are too.
        """
        deadline = time.monotonic() + _REAP_S
        while orphans := set(children(os.getpid())) - self._workers.keys():
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
            for pid in orphans:
                os.waitpid(pid, os.WNOHANG)
            if time.monotonic() > deadline:
                return
            time.sleep(0.001)


def _run_worker(
    request: dict[str, Any], server_pid: int, channel: Channel, control: Channel | None
) -> None:
    """Isolate the forked child and run its entry function; never return."""
    status = 1
    try:
        os.setsid()
        die_with_parent(server_pid)
        folder = Path(request["folder"])
        _redirect(log_of(folder))
        needed = {channel.fileno(), *([control.fileno()] if control else [])}
        _close_all_but(needed)
        environment = clean_environment(str(folder)) | request["environment"]
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None  # forget the server's own
        os.chdir(folder)
        cores.keep_off(os.getpid())
        _copy_kernels(Path(request["caches"]), folder)
        ResourceLimits(**request["limits"]).apply()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        if request["confined"]:
            _confine(request, folder, channel)
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


def _copy_kernels(caches: Path, folder: Path) -> None:
    """Copy the server's Triton compilations to the worker's own cache, which is writable."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copytree(caches / "triton", folder / "triton")


def _confine(request: dict[str, Any], folder: Path, channel: Channel) -> None:
    """Confine this process, and send the descriptor that supervises it over the channel."""
    caches, gpu = Path(request["caches"]), request["confined"] == "gpu"
    listener = isolation.confine(folder, caches, gpu=gpu, readable=request["readable"])
    fds = [] if listener is None else [listener]
    channel.send({"confined": True}, fds)
    for fd in fds:
        os.close(fd)


def _redirect(log: Path) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(null, 0)
    os.dup2(out, 1)
    os.dup2(out, 2)


def _close_all_but(needed: set[int]) -> None:
    start = 3
    for fd in sorted(needed):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def main() -> None:
    """Entry point of the server process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process handles Ctrl-C
    namespaces.enter()  # first, because it needs a single-threaded process
    isolation.hide()
    adopt_orphans()
    allow_many_files()
    server = Server(control := Channel.from_fd(int(sys.argv[1])), Path(sys.argv[2]))
    try:
        server.preload(sys.argv[3:])
        programs()  # looked up once, for all workers
        if theirs := os.environ.get(STRANGERS):
            server.confine(theirs)
        control.send({"ready": True})
        server.serve()
    except ChannelClosedError:
        pass  # the process that started this one ended during the preload
    finally:
        server.end()


if __name__ == "__main__":
    main()
