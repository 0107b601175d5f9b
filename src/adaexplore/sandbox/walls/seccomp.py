"""seccomp: filter of the system calls of a candidate's process and its descendants.

Most calls pass unexamined (the kernel caches that, so they cost nothing). Some are denied with
EPERM. Calls that create a process or thread, and calls that name another process, wait for the
supervisor's answer (see `watchdog`). The limit on processes is therefore strict, and no process can
be created while the others are being killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import platform
import signal
import struct
from dataclasses import dataclass
from typing import Literal

from adaexplore.sandbox.walls.kernel import prctl, syscall
from adaexplore.sandbox.walls.syscalls import AUDIT_ARCH, known_machine, number

_DENIED = (
    # other processes' memory, descriptors and pages
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease"),
    *("pidfd_getfd", "kcmp", "migrate_pages", "move_pages"),
    # namespaces and mounts
    *("unshare", "setns", "mount", "umount2", "pivot_root", "open_tree", "move_mount", "fsopen"),
    *("fsconfig", "fsmount", "fspick", "mount_setattr", "open_by_handle_at"),
    # parts of the kernel that candidates never need and many attacks used
    *("bpf", "perf_event_open", "userfaultfd", "add_key", "request_key", "keyctl"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
    # memory and messages that outlive the process or are not counted
    *("shmget", "semget", "msgget", "mq_open", "memfd_secret"),
    # a timer can send SIGCONT to a stopped process; those of setitimer send other signals
    "timer_create",
)
_SCHEDULING = ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
_TARGETING = (*_SCHEDULING, "prlimit64")
"""Calls whose first argument is the process they act on; 0 is the caller."""
_SIGNALLING = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
"""The same; for `kill`, 0 is the caller's own process group."""

_CLONE_NAMESPACES = 0x7E02_0000  # every CLONE_NEW... flag that clone(2) takes
_CLONE_PARENT = 0x8000  # the new process is a sibling: no descendant, so nobody would stop it
_AF_UNIX = 1
_SOCK_TYPE_MASK, _SOCK_STREAM, _SOCK_SEQPACKET = 0xF, 1, 5
_PRCTL_KEPT = (1, 4, 36)  # SET_PDEATHSIG, SET_DUMPABLE, SET_CHILD_SUBREAPER: the sandbox's own
_IOPRIO_WHO_PROCESS = 1
_SETSIG = 10  # fcntl: the signal that a descriptor sends
_SETLEASE = 1024  # fcntl: others wait until they may open the file
_EXIT_SIGNAL = 0xFF  # clone: the signal that the child's end sends

_LOAD, _AND, _JUMP_EQUAL, _JUMP_ANY, _RETURN = 0x20, 0x54, 0x15, 0x45, 0x06  # linux/filter.h
_ALLOW, _NOTIFY, _ERRNO = 0x7FFF_0000, 0x7FC0_0000, 0x0005_0000  # linux/seccomp.h
_SET_MODE_FILTER = 1
_SPEC_ALLOW, _NEW_LISTENER, _WAIT_KILLABLE = 1 << 2, 1 << 3, 1 << 5
_PR_SET_NO_NEW_PRIVS = 38
_X32 = 0x4000_0000  # x86-64's second table of system calls

_QUESTION = struct.Struct("QIIiIQ6Q")  # struct seccomp_notif: id, pid, flags, seccomp_data
_ANSWER = struct.Struct("QqiI")  # struct seccomp_notif_resp: id, value, error, flags
_RECEIVE = 0xC000_2100 | _QUESTION.size << 16
_SEND = 0xC000_2101 | _ANSWER.size << 16
_CONTINUE = 1

_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant
_Block = list[_Instruction]

_DENY: _Instruction = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
_PERMIT: _Instruction = (_RETURN, 0, 0, _ALLOW)
_ASK: _Instruction = (_RETURN, 0, 0, _NOTIFY)

CLONE_THREAD = 0x0001_0000


@dataclass(frozen=True, slots=True)
class Question:
    """System call that waits for an answer: the call and its first argument."""

    id: int
    call: int
    argument: int

    @property
    def creates(self) -> Literal["process", "thread"] | None:
        """Object that the call would create; None if the call names another process."""
        if self.call == number("clone"):
            return "thread" if self.argument & CLONE_THREAD else "process"
        return "process" if self.call in (number("fork"), number("vfork")) else None

    @property
    def target(self) -> int:
        """Process that the call names; negative for a group, -1 for all processes."""
        return ctypes.c_int(self.argument).value


def receive(listener: int) -> Question | None:
    """Return the next question; None if its thread has ended in the meantime."""
    data = bytearray(_QUESTION.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, data, True)
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
        return None
    id_, _, _, call, _, _, argument, *_ = _QUESTION.unpack(data)
    return Question(id_, call, argument)


def answer(listener: int, question: Question, *, allow: bool) -> None:
    """Allow the call, or make it fail with EPERM."""
    error, flags = (0, _CONTINUE) if allow else (-errno.EPERM, 0)
    with contextlib.suppress(FileNotFoundError):  # the thread has ended in the meantime
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(question.id, 0, error, flags))


def install(*, gpu: bool, signals: bool) -> int | None:
    """Install the filter on this thread and its descendants permanently.

    With `gpu`, the calls of the CUDA driver stay allowed. With `signals`, the filter also stops
    signals to other processes, for kernels whose Landlock does not. Returns the supervisor's
    descriptor; None if a filter with a supervisor exists already. In that case, supervised calls
    are denied if they name another process, and allowed if they create one. Raises `OSError` if the
    kernel has no seccomp filters or the machine's system calls are unknown.
    """
    if not known_machine():
        raise OSError(errno.ENOSYS, f"system calls of {platform.machine()} are not known")
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    supervised = _program(gpu=gpu, signals=signals, supervised=True)
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        try:
            return _install(supervised, flags)
        except OSError as error:  # an older kernel, or an existing supervisor
            if error.errno not in (errno.EINVAL, errno.EBUSY):
                raise
    _install(_program(gpu=gpu, signals=signals, supervised=False), 0)
    return None


def _install(program: bytes, flags: int) -> int:
    """Install without speculation controls, which slow measurements on older kernels."""
    body = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(body))
    call = number("seccomp")
    assert call is not None
    return syscall(call, _SET_MODE_FILTER, flags | _SPEC_ALLOW, header)


def _program(*, gpu: bool, signals: bool, supervised: bool) -> bytes:
    create = _ASK if supervised else _PERMIT
    target = _ASK if supervised else _DENY
    others: _Block = _one_of(0, (0,), _PERMIT, target)
    rules: dict[str, _Block] = {name: [_DENY] for name in _DENIED}
    rules |= dict.fromkeys(_TARGETING, others)
    rules |= {
        "fork": [create],
        "vfork": [create],
        "clone": [
            *(_low(0), (_AND, 0, 0, _EXIT_SIGNAL), (_JUMP_EQUAL, 0, 1, signal.SIGCONT), _DENY),
            *(_low(0), (_JUMP_ANY, 0, 1, _CLONE_NAMESPACES | _CLONE_PARENT), _DENY, create),
        ],
        "fcntl": _one_of(1, (_SETSIG, _SETLEASE), _DENY, _PERMIT),
        # Its flags lie in memory, where a filter cannot read; the C library then uses clone.
        "clone3": [_error(errno.ENOSYS)],
        # The C library then writes zeros, which are counted, instead of reserving blocks.
        "fallocate": [_error(errno.EOPNOTSUPP)],
        "ioprio_set": [*_unless(0, _IOPRIO_WHO_PROCESS), *_one_of(1, (0,), _PERMIT, _DENY)],
        "prctl": _one_of(0, _PRCTL_KEPT, _DENY, _PERMIT),
        "setpriority": [*_unless(0, 0), *_one_of(1, (0,), _PERMIT, _DENY)],
        "socket": _unix_sockets(_SOCK_SEQPACKET) if gpu else [_DENY],
        "socketpair": _unix_sockets(_SOCK_STREAM, _SOCK_SEQPACKET),
    }
    if not gpu:
        rules["memfd_create"] = [_DENY]
    if signals:
        rules |= dict.fromkeys(_SIGNALLING, others)
        rules["pidfd_send_signal"] = [_DENY]
    code = _preamble()
    for name, block in rules.items():
        call = number(name)
        if call is not None:
            code += [(_JUMP_EQUAL, 0, len(block), call), *block]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in [*code, _PERMIT])


def _preamble() -> _Block:
    """Deny calls by another machine's table, whose numbers mean other calls; load the number.

    A 64-bit kernel also serves 32-bit calls, and on x86-64 those with the x32 bit.
    """
    machine = platform.machine()
    block = [_load(4), (_JUMP_EQUAL, 1, 0, AUDIT_ARCH[machine]), _DENY, _load(0)]
    return [*block, (_JUMP_ANY, 0, 1, _X32), _DENY] if machine == "x86_64" else block


def _one_of(
    argument: int, values: tuple[int, ...], then: _Instruction, otherwise: _Instruction
) -> _Block:
    count = len(values)
    jumps = [(_JUMP_EQUAL, count - i, 0, value) for i, value in enumerate(values)]
    return [_low(argument), *jumps, otherwise, then]


def _unless(argument: int, value: int) -> _Block:
    """Deny the call unless the argument has that value, else continue."""
    return [_low(argument), (_JUMP_EQUAL, 1, 0, value), _DENY]


def _unix_sockets(*kinds: int) -> _Block:
    """Permit Unix sockets of these kinds.

    None of them connects to a service of the machine: a pair is connected permanently, and services
    on a path almost always use stream or datagram sockets.
    """
    _, *jumps = _one_of(1, kinds, _PERMIT, _DENY)
    return [*_unless(0, _AF_UNIX), _low(1), (_AND, 0, 0, _SOCK_TYPE_MASK), *jumps]


def _low(argument: int) -> _Instruction:
    """Load the low half of an argument; all examined arguments are 32 bits wide."""
    return _load(16 + 8 * argument)


def _load(offset: int) -> _Instruction:
    """Load a word of `struct seccomp_data`."""
    return (_LOAD, 0, 0, offset)


def _error(number: int) -> _Instruction:
    return (_RETURN, 0, 0, _ERRNO | number)
