"""Messages between processes: length-prefixed JSON over a socket, with file descriptors.

The format is JSON, not pickle, because one end may be untrusted: parsing a message runs no code.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

_HEADER = struct.Struct("!QI")
MAX_FDS = 250
"""Maximum of file descriptors in one message; the kernel's own limit is 253."""
MAX_MESSAGE_BYTES = 256 << 20
MAX_REPLY_BYTES = 16 << 20
"""Maximum of a reply of a confined process; the objects read from it take 20 times that."""


class ChannelClosedError(Exception):
    """The other end has closed, or its data is not a message."""


class Channel:
    """One end of a two-way connection. Not thread-safe: one request at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    @staticmethod
    def pair() -> tuple[Channel, Channel]:
        """Return two connected ends."""
        left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        return Channel(left), Channel(right)

    def fileno(self) -> int:
        """Return the descriptor, for `selectors` and for passing it on."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close this end; the other end then raises `ChannelClosedError`."""
        self._socket.close()

    def send(
        self, message: dict[str, Any], fds: Sequence[int] = (), timeout_s: float | None = None
    ) -> None:
        """Send one message and duplicates of `fds`.

        Raises `TimeoutError` if the other end does not read, or `ChannelClosedError`.
        """
        body = json.dumps(message).encode()
        if len(fds) > MAX_FDS:
            raise ValueError(f"{len(fds)} file descriptors in one message; the limit is {MAX_FDS}")
        try:
            self._socket.settimeout(timeout_s)
            socket.send_fds(self._socket, [_HEADER.pack(len(body), len(fds))], list(fds))
            self._socket.sendall(body)
        except TimeoutError:
            raise
        except OSError as error:
            raise ChannelClosedError(str(error)) from error

    def receive(
        self, timeout_s: float | None = None, most_bytes: int = MAX_MESSAGE_BYTES
    ) -> dict[str, Any]:
        """Return the next message; raise `TimeoutError` or `ChannelClosedError`."""
        message, fds = self.receive_with_fds(timeout_s, most_bytes)
        for fd in fds:
            os.close(fd)
        return message

    def receive_with_fds(
        self, timeout_s: float | None = None, most_bytes: int = MAX_MESSAGE_BYTES
    ) -> tuple[dict[str, Any], list[int]]:
        """Return the next message and its descriptors, which the caller then owns."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with ExitStack() as owned:  # closes the descriptors of a malformed message
            try:
                message, fds = self._message(deadline, most_bytes, owned)
            except TimeoutError:
                raise
            except (OSError, ValueError, RecursionError) as error:
                raise ChannelClosedError(str(error)) from error
            owned.pop_all()
            return message, fds

    def _message(
        self, deadline: float | None, most_bytes: int, owned: ExitStack
    ) -> tuple[dict[str, Any], list[int]]:
        self._arm(deadline)
        data, fds, _, _ = socket.recv_fds(self._socket, _HEADER.size, MAX_FDS)
        for fd in fds:
            owned.callback(os.close, fd)
        if not data:
            raise ChannelClosedError("the other end closed the channel")
        data += self._exactly(_HEADER.size - len(data), deadline)
        size, count = _HEADER.unpack(data)
        if size > most_bytes or count != len(fds):
            raise ChannelClosedError("malformed message")
        message = json.loads(self._exactly(size, deadline))
        if not isinstance(message, dict):
            raise ChannelClosedError("malformed message")
        return message, fds

    def _exactly(self, size: int, deadline: float | None) -> bytes:
        chunks = bytearray()
        while len(chunks) < size:
            self._arm(deadline)
            chunk = self._socket.recv(min(size - len(chunks), 1 << 20))
            if not chunk:
                raise ChannelClosedError("the other end closed the channel")
            chunks += chunk
        return bytes(chunks)

    def _arm(self, deadline: float | None) -> None:
        if deadline is None:
            self._socket.settimeout(None)
            return
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)

    @staticmethod
    def from_fd(fd: int) -> Channel:
        """Take over an inherited descriptor."""
        return Channel(socket.socket(fileno=fd))
