"""The access of a problem to the user's files, settled before any candidate runs.

The reference is run once in a trusted process, to see which files it needs, and once in a process
confined as a candidate's, to see that these are enough. Candidates may read exactly those files,
read-only. Files that may be secret are opened for nobody unless the user says so.
"""

from __future__ import annotations

import hashlib
import math
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError, BadProblemError
from adaexplore.core.problem import Access, Problem, Workload
from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.process import ForkServer, WorkerDiedError
from adaexplore.sandbox.watchdog import LimitExceededError

_FIND = "adaexplore.sandbox.user.needs:find"
_ATTEMPT = "adaexplore.sandbox.user.needs:attempt"
MOST_TIMED = 4
"""Groups of inputs that are timed; a candidate must be right on all."""
_LOAD_S = 300.0  # packages of models take long from a cold disk
_SECRET_SUFFIXES = {".pem", ".key", ".p12", ".pfx", ".kdbx", ".gpg", ".asc"}
_SECRET_STEMS = {"credentials", "secrets", "passwords", "id_rsa", "id_ed25519", "id_ecdsa"}


def settled(problem: Problem, file: Path, allow: Sequence[str] = ()) -> Problem:
    """Return the problem with its access and, where its file has groups of inputs, its workloads.

    `file` is the problem's file; `allow` names files and folders that candidates may read besides.
    Raises `BadProblemError` or `BadInputError`, in one line that names the path and the option.
    """
    allowed = [_allowed(Path(path)) for path in allow]
    place = file.resolve()
    access = Access(file=str(place), imports=(str(place.parent),), reads=tuple(map(str, allowed)))
    problem = replace(problem, access=access)
    server = ForkServer.start(["torch", "adaexplore.sandbox.user.needs"])
    try:
        found = _loaded(server, problem, _FIND)
        reads = [Path(path) for path in found["reads"]]
        modules = [(name, path) for name, path in found["modules"]]
        code = [Path(path) for _, path in modules]
        _refuse_secrets(problem.name, [*reads, *code], allowed)
        problem = replace(problem, access=_complete(access, reads, modules, allowed))
        _loaded(server, problem, _ATTEMPT, confined=True)
    finally:
        server.close()
    return replace(problem, workloads=_workloads(found["groups"])) if found["groups"] else problem


def _loaded(
    server: ForkServer, problem: Problem, entry: str, *, confined: bool = False
) -> dict[str, Any]:
    """Run a job that loads the reference; raise `BadProblemError` where it cannot."""
    kind = "cpu" if problem.device == "cpu" else "gpu"
    request = {"problem": problem.to_json()}
    try:
        if confined:
            readable = problem.access.readable
            found = run_job(server, entry, request, _LOAD_S, confined=kind, readable=readable)  # type: ignore[arg-type]
        else:
            found = run_job(server, entry, request, _LOAD_S)
    except TimeoutError:
        raise BadProblemError(
            f"{problem.name}.py: importing and constructing Model took more than {_LOAD_S:g} s"
        ) from None
    except (WorkerDiedError, LimitExceededError) as error:
        raise BadProblemError(
            f"{problem.name}.py: importing and constructing Model ended its process: {error}"
        ) from None
    if not found["why"]:
        return found
    if confined:
        raise BadProblemError(
            f"{found['why']} (in a process confined as candidates are; give the files and folders "
            "that it reads with --allow PATH)"
        )
    raise BadProblemError(found["why"])


def _allowed(path: Path) -> Path:
    """Return the real path of what the user allows; refuse what holds all that is the user's."""
    real = path.expanduser().resolve()
    if not real.exists():
        raise BadInputError(f"--allow {path}: no such file or folder")
    for private in (Path.home(), Path.cwd(), Path(tempfile.gettempdir())):
        if private.resolve().is_relative_to(real):
            raise BadInputError(
                f"--allow {path}: it holds {private}, which candidates must not read; name the "
                "files or the smaller folder that the problem needs"
            )
    return real


def _refuse_secrets(name: str, paths: Iterable[Path], allowed: Sequence[Path]) -> None:
    for path in paths:
        if _may_be_secret(path) and not any(path.is_relative_to(one) for one in allowed):
            raise BadProblemError(
                f"{name}.py: it reads {path}, which looks private, and candidates would read it "
                f"too; allow that with --allow {path}, or move it"
            )


def _may_be_secret(path: Path) -> bool:
    """Return whether a path goes through a hidden folder, or is named like a key."""
    hidden = any(part.startswith(".") for part in path.parts)
    return hidden or path.suffix in _SECRET_SUFFIXES or path.stem in _SECRET_STEMS


def _complete(
    access: Access,
    reads: Sequence[Path],
    modules: Sequence[tuple[str, str]],
    allowed: Sequence[Path],
) -> Access:
    files = [path for path in reads if not any(path.is_relative_to(one) for one in allowed)]
    code = [Path(path) for _, path in modules if not path.endswith("/")]
    return replace(
        access,
        reads=(*access.reads, *map(str, files)),
        modules=tuple(modules),
        digest=digest_of(sorted({*files, *code})),
    )


def _workloads(labels: Sequence[str]) -> tuple[Workload, ...]:
    """Return a workload for each group of inputs; those of equal shapes are numbered.

    The groups with most elements are timed: some benchmarks check dozens.
    """
    by_size = sorted(range(len(labels)), key=lambda i: _elements(labels[i]), reverse=True)
    timed = set(by_size[:MOST_TIMED])
    return tuple(
        Workload(label, draw=f"get_input_groups()[{i}]", timed=i in timed)
        for i, label in enumerate(numbered(labels))
    )


def digest_of(files: Iterable[Path]) -> str:
    """Return a digest of the content of files."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def numbered(labels: Sequence[str]) -> list[str]:
    """Return the labels, equal ones with a number."""
    return [
        label if labels.count(label) == 1 else f"{label}-{list(labels[:i]).count(label) + 1}"
        for i, label in enumerate(labels)
    ]


def _elements(label: str) -> int:
    """Return the number of elements of a group by its label, such as `4x8_scalar`."""
    shapes = [re.findall(r"\d+", shape) for shape in label.split("_")]
    return sum(math.prod(map(int, shape)) for shape in shapes)
