"""The files that a candidate's process may use."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from adaexplore.sandbox.walls import namespaces
from adaexplore.sandbox.walls.landlock import ALL, READ, RUN, USE

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
_CONFIGURATION = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "passwd", "group", "nsswitch.conf"),
    *("localtime", "timezone", "os-release", "lsb-release", "debian_version", "nvidia"),
)
_KERNEL = (
    *("/proc", "/sys/devices", "/sys/bus", "/sys/class", "/sys/module", "/sys/kernel/mm"),
    "/sys/fs/cgroup",
)
_DEVICES = ("null", "zero", "full", "random", "urandom")
_GPU_DEVICES = ("nvidia*", "nvhost*", "nvmap", "nvgpu", "dxg")
_TOOLS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "ld", "as", "ptxas")

Rule = tuple[Path, int]


def rules(folder: Path, caches: Path, *, gpu: bool, readable: Sequence[str] = ()) -> list[Rule]:
    """Return the rights of a candidate's process, path by path: see `isolation.confine`."""
    found = [(path, RUN) for path in programs()]
    found += [(Path("/etc", name), READ) for name in _CONFIGURATION]
    found += [(Path(name), READ) for name in _KERNEL]
    found += [(Path("/dev", name), USE) for name in _DEVICES]
    found += [(Path(path), READ) for path in readable]
    found += [(caches, READ), (folder, ALL), (log_of(folder), READ)]
    if gpu:
        found += [(path, USE) for name in _GPU_DEVICES for path in Path("/dev").glob(name)]
        found.append((Path("/proc/self"), USE))  # where the driver names its threads
    if gpu or namespaces.entered():
        found.append((namespaces.SHARED_MEMORY, ALL))  # CUDA IPC; Python's pools of processes
    return found


def log_of(folder: Path) -> Path:
    """Return the file with what a worker prints: beside its folder, where it can put no other."""
    return folder.with_name(f"{folder.name}.log")


@cache
def programs() -> list[Path]:
    """Return the folders of programs and libraries: system, interpreter, this package, compilers.

    A folder that holds the working directory, the home directory or the temporary folder is left
    out: these may hold the problem, the run, or somebody's keys. Its other entries are taken.
    """
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)  # not HOME, which is a worker's own folder
    private = [path.resolve() for path in (Path.cwd(), home, Path(tempfile.gettempdir()))]
    asked = [*map(Path, (*_SYSTEM, sys.prefix, sys.base_prefix, *sys.path)), *_toolchains()]
    for name in ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"):
        asked += map(Path, filter(None, os.environ.get(name, "").split(os.pathsep)))
    return _outermost([*(part for path in asked for part in _beside(path, private)), *_needed()])


def _needed() -> list[Path]:
    """Return the folders that every process needs, wherever they lie."""
    names = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
    library = [Path(sysconfig.get_path(name)) for name in names]
    return [Path(__file__).parents[2], *library, Path(sys.executable).resolve().parent]


def _toolchains() -> Iterator[Path]:
    """Yield the installations of the compilers on the search path."""
    for tool in (os.environ.get("CC"), os.environ.get("CXX"), *_TOOLS):
        program = shutil.which(tool) if tool else None
        if program:
            yield Path(program).resolve().parents[1]


def _beside(path: Path, private: list[Path]) -> Iterator[Path]:
    """Yield the folder, or where it holds private folders, its entries that hold none."""
    path = path.resolve()
    inside = [folder for folder in private if folder.is_relative_to(path)]
    if not inside:
        yield path
    elif path not in inside:
        for entry in path.iterdir():
            if not entry.is_symlink():  # it may lead to where the private folder is
                yield from _beside(entry, inside)


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that exist, without those inside another of them."""
    found: list[Path] = []
    for path in sorted(path.resolve() for path in paths if path.exists()):
        if not (found and path.is_relative_to(found[-1])):
            found.append(path)
    return found
