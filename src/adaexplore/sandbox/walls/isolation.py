"""Isolation of a candidate's process, and report of the mechanisms in force here.

Each mechanism is used if the kernel has it. `in_force` reports them as plain data, with one line
for the user for each missing mechanism.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adaexplore.sandbox.lock import make_lock_files
from adaexplore.sandbox.walls import landlock, namespaces, seccomp
from adaexplore.sandbox.walls.kernel import prctl, syscall
from adaexplore.sandbox.walls.landlock import READ
from adaexplore.sandbox.walls.limits import adopt_orphans
from adaexplore.sandbox.walls.paths import rules
from adaexplore.sandbox.walls.syscalls import number

_PR_SET_DUMPABLE = 4
_CAPABILITY_VERSION_3 = 0x2008_0522

_in_force: dict[str, Any] = {}


def confine(folder: Path, caches: Path, *, gpu: bool, readable: Sequence[str] = ()) -> int | None:
    """Confine this process, which must have a single thread, and its descendants for good.

    The rights that remain: to read and run the files of the system, the interpreter and this
    package, and the caches in `caches`; to read the user's files and folders in `readable`; to
    write in `folder`; with `gpu`, to use NVIDIA's devices. Returns the descriptor by which a
    `Watchdog` supervises the process, None where the kernel has none.
    """
    adopt_orphans()  # so that they are counted
    prctl(_PR_SET_DUMPABLE, 1)  # unlike trusted processes, because its watchdog reads /proc
    with contextlib.suppress(OSError):  # out of memory, the kernel ends this process first
        Path("/proc/self/oom_score_adj").write_text("1000")
    if not gpu:  # CUDA writes in /proc, which is read only then
        with contextlib.suppress(OSError):
            namespaces.fix_files(folder)
    drop_capabilities()
    files = landlock.restrict(
        rules(folder, caches, gpu=gpu, readable=readable), scope_sockets=not gpu
    )
    signals = files and landlock.scopes_signals()
    listener, filtered = None, True
    try:
        listener = seccomp.install(gpu=gpu, signals=not signals)
    except OSError:
        filtered = False
    _note(files=files, signals=signals, filtered=filtered, listener=listener)
    return listener


def confine_references(root: Path, readable: Sequence[str]) -> None:
    """Confine this thread of a fork server, and all workers that it forks, for good.

    For problems by strangers, whose references run in the judge: it then reads and runs the files
    of the system, the interpreter and this package, reads those in `readable`, and writes in `root`
    alone. Candidates are confined further, as ever. Raises `OSError` where the kernel has no
    Landlock.
    """
    if not landlock.version():
        raise OSError("this kernel has no Landlock")
    gpus = len(list(Path("/dev").glob("nvidia[0-9]*")))
    devices = ["cpu", *(f"cuda:{number}" for number in range(gpus))]
    drop_capabilities()  # with root's, it could trace what Landlock keeps from others
    locks = [(file, READ) for device in devices for file in make_lock_files(device)]
    landlock.restrict(
        [*rules(root, root, gpu=True, readable=readable), *locks], scope_sockets=False
    )


def missing_for_strangers() -> list[str]:
    """Return a line for each wall that problems and candidates by strangers need and lack here."""
    found = []
    if not landlock.version():
        found.append("this kernel has no Landlock (Linux 5.13 or newer)")
    if not namespaces.possible():
        found.append("network namespaces are not available to this user")
    return found


def drop_capabilities() -> None:
    """Drop all privileges of root except the ownership of its files."""
    call = number("capset")
    if call is not None:
        syscall(call, struct.pack("II", _CAPABILITY_VERSION_3, 0), bytes(24))


def hide() -> None:
    """Hide this process's memory and environment from the user's unprivileged processes."""
    prctl(_PR_SET_DUMPABLE, 0)


def in_force(request: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - a job
    """Job for a confined worker: its isolation by subject, and `missing`, lines for the user.

    The subjects are "network", "files", "signals", "system_calls" and "processes"; each names a
    mechanism or is empty (see `core.environment.Isolation`).
    """
    return _in_force


def _note(*, files: bool, signals: bool, filtered: bool, listener: int | None) -> None:
    in_namespace = namespaces.entered()
    found = {
        "network": _both(in_namespace and "namespace", filtered and "seccomp"),
        "files": _both(files and f"landlock {landlock.version()}"),
        "signals": _both(signals and "landlock", not signals and filtered and "seccomp"),
        "system_calls": _both(filtered and "seccomp"),
        "processes": _both(listener is not None and "seccomp", "watch"),
    }
    lines = {
        "network": "candidates can reach the network",
        "files": "candidates can read your files",
        "signals": "candidates can signal your other processes",
        "system_calls": "candidates can make any system call",
    }
    why = {
        "network": "neither network namespaces nor seccomp is available here",
        "files": "this kernel has no Landlock (Linux 5.13 or newer)",
        "signals": "this kernel has neither seccomp nor Landlock 6 (Linux 6.12)",
        "system_calls": "seccomp is not available here",
    }
    missing = [f"{lines[subject]}: {why[subject]}" for subject in lines if not found[subject]]
    _in_force.update(found, missing=missing)


def _both(*mechanisms: str | bool) -> str:
    return ", ".join(m for m in mechanisms if isinstance(m, str))
