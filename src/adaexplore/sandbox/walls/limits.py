"""Resource limits and environment of a worker."""

from __future__ import annotations

import os
import resource
import signal
from dataclasses import asdict, dataclass
from typing import Any

from adaexplore.sandbox.device_log import DEVICE_LOG
from adaexplore.sandbox.hub import hub_environment
from adaexplore.sandbox.lock import LOCKS
from adaexplore.sandbox.walls.kernel import prctl

STRANGERS = "ADAEXPLORE_STRANGERS"
"""Environment variable of a process whose problems are by strangers: the folder that their
references may read. Fork servers then confine themselves, see `isolation.confine_references`."""
GPU_MEMORY_SHARE = 0.75
"""The share of a GPU's memory that PyTorch may allocate for a candidate."""

_PR_SET_PDEATHSIG = 1  # see prctl(2)
_PR_SET_CHILD_SUBREAPER = 36

_FILE_BYTES = 1 << 29
_FOLDER_BYTES = 1 << 30
_TASKS, _TASKS_PER_CORE = 128, 8

_PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    LOCKS,
    DEVICE_LOG,
    STRANGERS,
    "VIRTUAL_ENV",
    "CC",
    "CXX",
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "GOMP_CPU_AFFINITY",
    "GOMP_SPINCOUNT",
    "MKL_NUM_THREADS",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "TRITON_PTXAS_PATH",
    "TRITON_LIBCUDA_PATH",
)

_DEFAULTS = {
    # Time that OpenMP's threads spin before they sleep: some ten microseconds. GNU's own default is
    # over a millisecond. With it, the scheduler of a busy machine leaves two threads of one process
    # on one core, where every parallel region lasts until the next tick (16 ms measured instead of
    # 0.1), in only one of the processes that are compared.
    "GOMP_SPINCOUNT": "3000",
}


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """Resource limits of one worker; None means unlimited.

    The kernel enforces two limits for each process: `memory_bytes` bounds private writable memory
    (RLIMIT_DATA; not set for CUDA, whose driver maps far more than it uses), `file_bytes` every
    written file, standard output included.

    The watchdog (see `watchdog`) enforces the others for a confined worker together with all its
    descendants, and ends them at a violation. `total_bytes` bounds their memory, shared memory
    included, `folder_bytes` their data on disk, `tasks` the number of live processes and threads.
    """

    memory_bytes: int | None = None
    file_bytes: int | None = None
    total_bytes: int | None = None
    folder_bytes: int | None = None
    tasks: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the fork server."""
        return asdict(self)

    def apply(self) -> None:
        """Apply the limits to this process and its descendants."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self.memory_bytes is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (self.memory_bytes, self.memory_bytes))
        if self.file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.file_bytes, self.file_bytes))
            # A write past the limit then fails with EFBIG instead of killing the process.
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def candidate_limits(memory_bytes: int, *, gpu: bool) -> ResourceLimits:
    """Return the limits of a candidate; `memory_bytes` applies on the CPU.

    On a GPU machine the limit is half of the host's memory. The limit of tasks allows for eight
    threads per core, which is generous, and for compilers.
    """
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return ResourceLimits(
        memory_bytes=None if gpu else memory_bytes,
        file_bytes=_FILE_BYTES,
        total_bytes=installed // 2 if gpu else memory_bytes,
        folder_bytes=_FOLDER_BYTES,
        tasks=_TASKS + _TASKS_PER_CORE * len(os.sched_getaffinity(0)),
    )


def allow_many_files() -> None:
    """Raise the soft limit of open files: on the CPU every shared tensor holds one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def clean_environment(folder: str) -> dict[str, str]:
    """Return a worker's environment: for compilers and drivers, no keys, caches in `folder`."""
    inherited = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return (
        _DEFAULTS
        | inherited
        | hub_environment()
        | {
            "HOME": folder,
            "TMPDIR": folder,
            "XDG_CACHE_HOME": f"{folder}/cache",
            "TRITON_CACHE_DIR": f"{folder}/triton",
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
            "TORCH_EXTENSIONS_DIR": f"{folder}/extensions",
            "CUDA_CACHE_PATH": f"{folder}/cuda",
            # torch.cuda.is_available() by the driver would make CUDA unusable in forks.
            "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
            # Inductor's compile threads would start before the fork and be missing after it.
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
    )


def die_with_parent(parent_pid: int) -> None:
    """Make the kernel kill this process when its parent ends, however it ends."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # the parent ended before the request
        os._exit(1)


def adopt_orphans() -> None:
    """Make this process the parent of every descendant that loses its own.

    No descendant can then escape by starting its own session and letting its parent end.
    """
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
