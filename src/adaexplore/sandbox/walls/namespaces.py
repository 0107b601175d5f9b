"""Namespaces of the fork server and all its workers: no network, and their own shared memory.

They are entered once, before the first fork, at no cost for a worker. Process and IPC namespaces
stay shared, because CUDA IPC between the judge and a candidate does not cross them. It does not
cross a network namespace with only one of the two inside either (the driver passes a descriptor
over an abstract socket).
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
from pathlib import Path

from adaexplore.sandbox.trees import remove_tree
from adaexplore.sandbox.walls.kernel import mount, syscall, unshare
from adaexplore.sandbox.walls.syscalls import number

SHARED_MEMORY = Path("/dev/shm")
_SHARED_MEMORY_OPTIONS = "size=1g,nr_inodes=64k,mode=1777"

_CLONE_NEWNS = 0x0002_0000  # see unshare(2), mount(2)
_CLONE_NEWUSER = 0x1000_0000
_CLONE_NEWNET = 0x4000_0000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 1 << 12, 1 << 14, 1 << 18
_MOUNT_READ_ONLY, _AT_RECURSIVE, _AT_FDCWD = 1, 0x8000, -100  # see mount_setattr(2)

_entered = False


def entered() -> bool:
    """Return true if this process, or the one it was forked from, has entered its namespaces."""
    return _entered


def enter() -> None:
    """Move this process, which must have a single thread, into an empty network namespace.

    It also enters a mount namespace with its own `/dev/shm` of at most 1 GiB. If the kernel or the
    container forbids it, nothing changes and `entered` returns false.
    """
    global _entered
    flags = _working_flags()
    if flags:
        _enter(flags)
        _entered = True


def possible() -> bool:
    """Return true if a process of this user can enter the namespaces."""
    return _working_flags() != 0


def _working_flags() -> int:
    choices = (_CLONE_NEWNET | _CLONE_NEWNS, _CLONE_NEWNET | _CLONE_NEWNS | _CLONE_NEWUSER)
    return next((flags for flags in choices if _works(flags)), 0)


def _works(flags: int) -> bool:
    """Try the namespaces in a child: a partially set up user namespace cannot be left."""
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
    if flags & _CLONE_NEWUSER:  # an identity map, so that files keep their owners
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    mount(None, "/", _MS_REC | _MS_PRIVATE)
    mount("tmpfs", str(SHARED_MEMORY), _MS_NOSUID | _MS_NODEV, _SHARED_MEMORY_OPTIONS)


def fix_files(folder: Path) -> None:
    """Let this process and its descendants change no file but those in `folder` and `/dev/shm`.

    For modes, owners, times and attributes, which Landlock does not govern. The process is in
    `folder` then, by a mount of its own. Raises `OSError` where the kernel cannot do this.
    """
    call = number("mount_setattr")
    if call is None or not _entered:
        raise OSError(errno.ENOSYS, "no mount namespace")
    unshare(_CLONE_NEWNS)
    mount(str(folder), str(folder), _MS_BIND)
    everything, kept = (_MOUNT_READ_ONLY, 0), (0, _MOUNT_READ_ONLY)
    for place, flags, (make, clear) in (
        ("/", _AT_RECURSIVE, everything),
        (str(folder), 0, kept),
        (str(SHARED_MEMORY), 0, kept),
    ):
        attributes = struct.pack("QQQQ", make, clear, 0, 0)
        syscall(call, _AT_FDCWD, place.encode() + b"\0", flags, attributes, len(attributes))
    os.chdir(folder)


def sweep_shared_memory(pids: list[int]) -> None:
    """Remove what lies in `/dev/shm` and none of the processes `pids` has mapped.

    Remains of ended candidates would otherwise fill it. Does nothing if `/dev/shm` is shared with
    the rest of the machine.
    """
    if not _entered:
        return
    left = list(SHARED_MEMORY.iterdir())
    if not left:
        return
    maps = "".join(_maps(pid) for pid in pids)
    for file in left:
        if str(file) in maps:
            continue
        if file.is_dir() and not file.is_symlink():
            remove_tree(file)
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)


def _maps(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:  # the process has ended
        return ""
