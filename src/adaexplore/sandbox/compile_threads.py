"""Number of compile threads of Inductor."""

from __future__ import annotations

import os

import torch._inductor.config as inductor

_MAX_THREADS = 8


def compile_in_parallel() -> None:
    """Let Inductor compile C++ on several cores in this process.

    The fork server itself is limited to one thread, because threads do not survive a fork. For
    Triton, Inductor would start processes that finish importing PyTorch only after the work is
    done.
    """
    threads = min(len(os.sched_getaffinity(0)), _MAX_THREADS)
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = str(threads)  # read in several places
    inductor.compile_threads = threads
