"""The table of system calls against the kernel's headers, if they are installed."""

import platform
import re
from pathlib import Path

import pytest

from adaexplore.sandbox.walls import syscalls

HEADERS = {  # the second is that of every machine younger than x86, of aarch64 too
    "x86_64": (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), r"__NR_(\w+) (\d+)"),
    "aarch64": (Path("/usr/include/asm-generic/unistd.h"), r"__NR(?:3264)?_(\w+)\s+(\d+)"),
}


@pytest.mark.parametrize("machine", HEADERS)
def test_numbers_match_the_kernel_headers(machine, monkeypatch):
    header, pattern = HEADERS[machine]
    if not header.exists():
        pytest.skip(f"no {header}")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    real = {name: int(number) for name, number in re.findall(pattern, header.read_text())}
    names = [name for name in syscalls._NUMBERS if syscalls.number(name) is not None]
    assert len(names) > 50
    assert {name: syscalls.number(name) for name in names} == {name: real[name] for name in names}


def test_numbers_of_other_machines_are_unknown(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "vax")
    assert not syscalls.known_machine()
    assert syscalls.number("ptrace") is None
