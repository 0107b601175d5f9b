"""A copy of the repository in which mutants are tried, out of reach of everything else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from adaexplore.core import BadInputError
from adaexplore_lab.mutate.mutants import Mutant

_PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=mutants")
_FAST = ("-m", "not slow and not gpu")
_FAILED = ("FAILED ", "ERROR ")
_NO_TESTS = 5  # exit code of pytest


@dataclass(frozen=True, slots=True)
class Tested:
    """The outcome of tests: `by` is the first that failed, empty where pytest itself did."""

    outcome: Literal["passed", "failed", "late"]
    by: str = ""


class Copy:
    """A copy of the repository at `root` in the folder `folder`, with an environment of its own.

    Tests run in a namespace of processes: a defect in code that ends processes reaches no other
    program, and nothing that a test leaves behind outlives it.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self._folder = folder.resolve()
        self._changed_at = 0
        for name in _files(root):
            (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, self._folder / name)
        (self._folder / ".tmp").mkdir()
        self._python = self._environment()

    def _environment(self) -> Path:
        """Make a virtual environment with the packages of this one; return its interpreter.

        Its sources are found by PYTHONPATH, before those that the packages may name.
        """
        home = self._folder / ".venv"
        venv.create(home, symlinks=True)
        packages = home / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
        shutil.rmtree(packages)
        packages.symlink_to(_installed())
        return home / "bin" / "python"

    def try_out(self, mutant: Mutant, tests: Sequence[str], limit_s: float) -> Tested:
        """Run tests on a mutant, and restore the file."""
        path = self._folder / mutant.path
        original = path.read_text(encoding="utf-8")
        self._write(path, mutant.source)
        try:
            return self.run(tests, limit_s)
        finally:
            self._write(path, original)

    def _write(self, path: Path, source: str) -> None:
        """Write a file with a time of its own: Python compares times in seconds."""
        path.write_text(source, encoding="utf-8")
        self._changed_at += 2
        os.utime(path, (self._changed_at, self._changed_at))

    def run(self, tests: Sequence[str], limit_s: float) -> Tested:
        """Run tests until one fails, at the lowest priority."""
        folder = self._folder
        command = [*_namespace(), "nice", "-n", "19", str(self._python), *_PYTEST, *_FAST, *tests]
        sources = os.pathsep.join((str(folder / "src"), str(folder / "lab" / "src")))
        environment = os.environ | {"TMPDIR": str(folder / ".tmp"), "PYTHONPATH": sources}
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        try:
            out, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return Tested("late")
        finally:
            shutil.rmtree(folder / ".tmp", ignore_errors=True)
            (folder / ".tmp").mkdir(exist_ok=True)
        if process.returncode == _NO_TESTS or "unshare: " in out:
            raise BadInputError(f"no test could be run: {' '.join(command)}\n{out[-500:]}")
        if process.returncode == 0:
            return Tested("passed")
        lines = [line.partition(" ")[2] for line in out.splitlines() if line.startswith(_FAILED)]
        return Tested("failed", lines[0].partition(" - ")[0] if lines else "")


def _namespace() -> list[str]:
    """Return the command that runs another in a namespace of processes, which ends with us."""
    as_user = [] if os.getuid() == 0 else ["--user", "--map-current-user"]
    with_us = ["setpriv", "--pdeathsig", "KILL"]
    return [*with_us, "unshare", *as_user, "--pid", "--fork", "--kill-child", "--mount-proc"]


def _installed() -> Path:
    """Return the folder of the packages that tests need."""
    found = find_spec("pytest")
    if found is None or found.origin is None:
        raise BadInputError("no pytest is installed here; `make dev` installs it")
    return Path(found.origin).parents[1]


def _files(root: Path) -> list[str]:
    """Return the files that git knows or would take, without those that were removed."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout
    return [name for name in names.split("\0") if name and (root / name).is_file()]
