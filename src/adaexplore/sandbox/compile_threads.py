"""How many threads Inductor compiles with."""

from __future__ import annotations

import os

import torch._inductor.config as inductor

_MOST = 8


def compile_in_parallel() -> None:
    """Lets Inductor in this process use the cores, for C++.

    The fork server itself is held to one, since threads started before a fork are missing after.
    For Triton, Inductor would start processes that import PyTorch and are ready when all is done.
    """
    threads = min(len(os.sched_getaffinity(0)), _MOST)
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = str(threads)  # Inductor reads it here and there
    inductor.compile_threads = threads
