"""The needs of kernels, read from their machine code, an ELF file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_REGISTERS = 0x2F  # attributes of .nv.info, by the numbers that cuobjdump and nvdisasm print
_FRAME = 0x11
_BLOCK = 0x10  # threads of a block in x, y and z, where the source states them
_SHARED, _RESERVED = ".nv.shared.", ".nv.shared.reserved.0"
_RESERVED_BYTES = 1024  # the system's in each block, beyond its limit
_SIZED = 4  # the format of an entry that has a size


@dataclass(frozen=True, slots=True)
class KernelNeeds:
    """What the kernels of a file need, the largest of each.

    `frame_bytes` are those of a thread's stack frame, which holds spilled registers. `threads` of a
    block and `shared_bytes` of a block are what the code declares; 0 if nothing.
    """

    registers: int
    frame_bytes: int
    threads: int
    shared_bytes: int


def read_cubin(cubin: bytes) -> KernelNeeds:
    """Return the needs of a file's kernels, which are in the sections `.nv.info`.

    An entry there has a format byte, an attribute byte and a 16-bit size; `_SIZED` entries are
    followed by so many bytes. Registers and frames have a symbol before the value.
    """
    registers = frame = threads = 0
    sections = list(_sections(cubin))
    for name, _, data in sections:
        if not name.startswith(".nv.info"):
            continue
        for attribute, value in _entries(data):
            if attribute == _REGISTERS:
                registers = max(registers, struct.unpack_from("<II", value)[1] & 0xFFFF)
            elif attribute == _FRAME:
                frame = max(frame, struct.unpack_from("<II", value)[1])
            elif attribute == _BLOCK:
                x, y, z = struct.unpack_from("<III", value)
                threads = max(threads, x * y * z)
    sizes = {name: size for name, size, _ in sections if name.startswith(_SHARED)}
    reserved = _RESERVED_BYTES if _RESERVED in sizes else 0  # part of each size, since sm_90
    shared = max(sizes.values(), default=0) - reserved
    return KernelNeeds(registers, frame, threads, max(shared, 0))


def _entries(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the attribute and the value of each entry that has a size."""
    at = 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == _SIZED:
            yield attribute, data[at : at + size]
            at += size


def _sections(elf: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Yield the name, the size and the content of each section of an ELF64 file.

    Sections of shared memory have a size and no content.
    """
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    entry_bytes, count, names_index = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [
        struct.unpack_from("<IIQQQQIIQQ", elf, table + i * entry_bytes) for i in range(count)
    ]
    names = headers[names_index][4]
    for header in headers:
        start = names + header[0]
        name = elf[start : elf.index(b"\0", start)].decode()
        yield name, header[5], elf[header[4] : header[4] + header[5]]
