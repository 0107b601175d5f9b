"""Where a service listens: its address, its certificate and the proxies in front of it."""

from __future__ import annotations

import errno
import ipaddress
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from adaexplore.core.errors import BadInputError

_BACKLOG = 2048


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a service listens, and how requests are protected on their way.

    `certificate` and `key` are files in PEM form. `proxies` are the addresses or networks of
    proxies whose X-Forwarded-For is believed, by commas.
    """

    host: str = "127.0.0.1"
    port: int = 8710
    certificate: Path | None = None
    key: Path | None = None
    proxies: str = ""

    def check(self) -> None:
        """Raise `BadInputError` for options that do not fit, or that expose tokens."""
        for proxy in self.proxies.split(",") if self.proxies else ():
            _require_address(proxy.strip())
        if (self.certificate is None) != (self.key is None):
            raise BadInputError("--tls-certificate and --tls-key go together")
        if self.certificate and self.key:
            _require_pair(self.certificate, self.key)
        elif not (self.proxies or _is_loopback(self.host)):
            raise BadInputError(
                f"--host {self.host}: tokens would cross the network in the clear; give "
                "--tls-certificate and --tls-key, or --proxy with the address of a proxy that has "
                "TLS"
            )

    def url(self, port: int) -> str:
        """Return the address of a service that listens at a port."""
        secure = "s" if self.certificate else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{secure}://{host}:{port}"


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raise `BadInputError` where that is impossible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        option = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        why = str(error.strerror).partition(" (")[0]
        raise BadInputError(
            f"cannot listen at {host}, port {port}: {why}; name another {option}"
        ) from None


def _require_address(proxy: str) -> None:
    """Raise `BadInputError` unless a proxy is named by its address, or by its network."""
    try:
        ipaddress.ip_network(proxy)
    except ValueError as error:
        raise BadInputError(
            f"--proxy: {error}; requests come from an address, so write that of the proxy, such as "
            "10.0.0.5, or its network, such as 10.0.0.0/24"
        ) from None


def _require_pair(certificate: Path, key: Path) -> None:
    """Raise `BadInputError` unless a key fits a certificate, and both can be read."""
    for option, file in (("certificate", certificate), ("key", key)):
        try:
            file.read_bytes()
        except OSError as error:
            raise BadInputError(f"--tls-{option} {file}: {error.strerror}") from None

    def refuse() -> NoReturn:
        raise BadInputError(
            f"--tls-key {key}: it has a passphrase, which nobody could type at a start; write it "
            "without one: openssl pkey -in FILE -out NEW"
        )

    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key, password=refuse)
    except ssl.SSLError as error:
        fits = error.reason != "KEY_VALUES_MISMATCH"
        why = "one of them is not in PEM form" if fits else "the key belongs to another certificate"
        raise BadInputError(f"--tls-certificate {certificate}, --tls-key {key}: {why}") from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
