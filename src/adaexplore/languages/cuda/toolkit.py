"""NVIDIA's compiler for CUDA C++: its location, and a trial build on this machine.

Candidates build through `torch.utils.cpp_extension`, which reads CUDA_HOME, PATH and
TORCH_CUDA_ARCH_LIST in their process.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from adaexplore.core.text.headline import headline

_USUAL = Path("/usr/local/cuda")
_VARIABLES = ("CUDA_HOME", "CUDA_PATH")
_TRIAL = "#include <cuda_runtime.h>\n__global__ void trial(float* x) { x[threadIdx.x] = 1.0f; }\n"
_TRIAL_S = 60.0


def cuda_home() -> Path | None:
    """Return the folder of the toolkit; None if there is none.

    The places are those of PyTorch: CUDA_HOME, CUDA_PATH, the search path, /usr/local/cuda. A place
    without nvcc or without its headers (such as a wrapper script on the search path) is skipped.
    """
    places = [Path(os.environ[name]) for name in _VARIABLES if os.environ.get(name)]
    program = shutil.which("nvcc")
    if program:
        places.append(Path(program).resolve().parents[1])
    return next((place for place in [*places, _USUAL] if _is_toolkit(place)), None)


def lacking() -> str | None:
    """Return the missing requirement of CUDA C++ and its remedy; None if nothing lacks.

    The result is one line. A variable that names no toolkit is reported even if another place has
    one, because the user meant the toolkit of the variable.
    """
    for name in _VARIABLES:
        named = os.environ.get(name)
        if named and not _is_toolkit(Path(named)):
            return f"{name}={named} is no CUDA toolkit (bin/nvcc and headers); correct or unset it"
    if cuda_home() is None:
        return (
            "nvcc is not there: no CUDA_HOME, no nvcc on the search path, no toolkit in "
            f"{_USUAL}; install NVIDIA's CUDA toolkit, or set CUDA_HOME to its folder"
        )
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        return f"no C++ compiler ({compiler}) is there; install g++, or set CXX"
    if shutil.which("ninja", path=_search_path()) is None:
        return "ninja, which PyTorch builds extensions with, is not there; pip install ninja"
    return None


def use_toolkit() -> None:
    """Make this process, and hence its forks, build with the toolkit that `lacking` found."""
    home = cuda_home()
    if home is not None:
        os.environ["CUDA_HOME"] = str(home)
    os.environ["PATH"] = _search_path()


def building_for(capability: tuple[int, int]) -> dict[str, str]:
    """Return the environment in which PyTorch builds for this compute capability only."""
    major, minor = capability
    return {"TORCH_CUDA_ARCH_LIST": f"{major}.{minor}"}


def try_building(request: dict[str, Any]) -> dict[str, Any]:
    """Run a job: compile a kernel for the compute capability in `request` (such as "9.0").

    Returns nvcc's version in "versions"; "unusable" is nvcc's error, in one line, or "".
    """
    home = cuda_home()
    assert home is not None  # `lacking` comes first
    arch = request["compute_capability"].replace(".", "")
    Path("trial.cu").write_text(_TRIAL)
    host = ["-ccbin", os.environ["CC"]] if "CC" in os.environ else []  # as PyTorch does
    command = [str(home / "bin" / "nvcc"), f"-gencode=arch=compute_{arch},code=sm_{arch}", *host]
    try:
        done = _run([*command, "-c", "trial.cu", "-o", "trial.o"])
        version = re.search(r"release [\d.]+, V([\d.]+)", _run([command[0], "--version"]).stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"unusable": f"{command[0]} does not run: {error}", "versions": {}}
    if done.returncode:
        reason = headline(done.stdout) or f"exit code {done.returncode}"
        return {"unusable": f"{command[0]} does not build for sm_{arch}: {reason}", "versions": {}}
    return {"unusable": "", "versions": {"nvcc": version[1] if version else ""}}


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TRIAL_S,
        check=False,
    )


def _is_toolkit(home: Path) -> bool:
    header = "cuda_runtime.h"
    headers = [home / "include" / header, *home.glob(f"targets/*/include/{header}")]
    return (home / "bin" / "nvcc").is_file() and any(path.is_file() for path in headers)


def _search_path() -> str:
    """Return PATH followed by pip's folder of programs, which only an activated venv adds."""
    return os.pathsep.join(
        filter(None, [os.environ.get("PATH", os.defpath), sysconfig.get_path("scripts")])
    )
