"""Landlock: limits the files that a process tree may open and the processes it may signal.

Everything that is not allowed is denied permanently. The kernel also denies a restricted process to
trace an unrestricted one, and thus to read its memory, environment and descriptors in /proc. See
https://docs.kernel.org/userspace-api/landlock.html.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable
from pathlib import Path

from adaexplore.sandbox.walls.kernel import prctl, syscall

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

READ = _READ_FILE | _READ_DIR
RUN = READ | _EXECUTE
USE = READ | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
"""Read and write existing files and devices, without creating any."""
ALL = (1 << 16) - 1

_SCOPE_ABSTRACT_UNIX_SOCKET, _SCOPE_SIGNAL = 1 << 0, 1 << 1


def version() -> int:
    """Return the version of the kernel's Landlock interface, 0 if there is none."""
    try:
        return syscall(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    except OSError:
        return 0


def scopes_signals() -> bool:
    """Return true if Landlock confines signals (since Linux 6.12)."""
    return version() >= 6


def restrict(rules: Iterable[tuple[str | Path, int]], *, scope_sockets: bool) -> bool:
    """Restrict this thread and its descendants to the access that `rules` give, path by path.

    The rule of a directory holds for everything beneath it; missing paths are ignored. With
    `scope_sockets`, abstract Unix sockets of other processes are denied too. Returns false if the
    kernel has no Landlock.
    """
    abi = version()
    if not abi:
        return False
    ruleset = _ruleset(abi, scope_sockets)
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & _handled(abi))
        prctl(_PR_SET_NO_NEW_PRIVS, 1)
        syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return True


def _handled(abi: int) -> int:
    """Return the rights that this version knows and can therefore deny."""
    known = 13 if abi < 2 else 14 if abi < 3 else 15 if abi < 5 else 16
    return (1 << known) - 1


def _ruleset(abi: int, scope_sockets: bool) -> int:
    scoped = _SCOPE_SIGNAL | (_SCOPE_ABSTRACT_UNIX_SOCKET if scope_sockets else 0)
    attributes = struct.pack("QQQ", _handled(abi), 0, scoped)  # files, network, scopes
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    return syscall(_CREATE_RULESET, attributes, size, 0)


def _allow(ruleset: int, path: str | Path, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _OF_A_FILE
        syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, struct.pack("=Qi", rights, fd), 0)
    finally:
        os.close(fd)
