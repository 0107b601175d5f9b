"""Compile threads of Inductor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch._inductor.config as inductor
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.select_algorithm import AlgorithmSelectorCache

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


@contextmanager
def templates_in_threads() -> Iterator[None]:
    """Let Inductor compile the templates that it times in threads of this process.

    Its process pool compiles them as well, but for nothing: the process that times them compiles
    them again, one after another (PyTorch 2.11 on an H200: 44 s for 22 templates of a product, 7 s
    with threads). Pins `AlgorithmSelectorCache.make_precompile_fn` and
    `AsyncCompile.use_process_pool`.
    """
    given: Any = AlgorithmSelectorCache.make_precompile_fn

    def in_threads(*args: Any, **kwargs: Any) -> Any:
        with patch.object(AsyncCompile, "use_process_pool", classmethod(lambda _: False)):
            return given(*args, **kwargs)

    with patch.object(AlgorithmSelectorCache, "make_precompile_fn", in_threads):
        yield
