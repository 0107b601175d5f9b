"""Namespaces of the fork server, hence of all its workers: no network, shared memory of their own.

Entered once, before the first fork, so that a worker pays nothing. Process and IPC namespaces are
left alone: CUDA IPC between the judge and a candidate does not cross them, nor does it cross a
network namespace that only one of the two is in (the driver passes a descriptor over an abstract
socket).
"""

from __future__ import annotations

import os
from pathlib import Path

from adaexplore.sandbox.kernel import mount, unshare

SHARED_MEMORY = Path("/dev/shm")
_SHARED_MEMORY_OPTIONS = "size=1g,nr_inodes=64k,mode=1777"

_CLONE_NEWNS = 0x0002_0000  # see unshare(2), mount(2)
_CLONE_NEWUSER = 0x1000_0000
_CLONE_NEWNET = 0x4000_0000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 2, 4, 1 << 14, 1 << 18

_entered = False


def entered() -> bool:
    """Whether this process, or the one it was forked from, is in namespaces of its own."""
    return _entered


def enter() -> None:
    """Moves this process, which must have a single thread, into an empty network namespace.

    And into a mount namespace whose `/dev/shm` is its own and holds at most 1 GiB. Where the kernel
    or the container forbids it, nothing changes and `entered` says so.
    """
    global _entered
    for flags in (_CLONE_NEWNET | _CLONE_NEWNS, _CLONE_NEWNET | _CLONE_NEWNS | _CLONE_NEWUSER):
        if _works(flags):
            _enter(flags)
            _entered = True
            return


def _works(flags: int) -> bool:
    """Tries it in a child: a user namespace that cannot be set up to its end cannot be left."""
    pid = os.fork()
    if pid == 0:
        try:
            _enter(flags)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def _enter(flags: int) -> None:
    uid, gid = os.geteuid(), os.getegid()
    unshare(flags)
    if flags & _CLONE_NEWUSER:  # everybody stays who they were, so files keep their owners
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    mount(None, "/", _MS_REC | _MS_PRIVATE)
    mount("tmpfs", str(SHARED_MEMORY), _MS_NOSUID | _MS_NODEV, _SHARED_MEMORY_OPTIONS)


def sweep_shared_memory(pids: list[int]) -> None:
    """Removes the files in `/dev/shm` that none of the processes `pids` has mapped.

    What ended candidates left would otherwise fill it. Does nothing where `/dev/shm` is shared with
    the rest of the machine.
    """
    if not _entered:
        return
    left = list(SHARED_MEMORY.iterdir())
    if not left:
        return
    maps = "".join(_maps(pid) for pid in pids)
    for file in left:
        if str(file) not in maps:
            file.unlink(missing_ok=True)


def _maps(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/maps").read_text()
    except OSError:  # it has ended
        return ""
