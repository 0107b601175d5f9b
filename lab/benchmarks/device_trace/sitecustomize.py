"""Write down who holds and awaits a GPU, and what its judges do: on PYTHONPATH, for every process.

Each process appends to `$DEVICE_TRACE/held.PID` and `waited.PID` a line of JSON for each hold of a
GPU's lock and each wait for it: when it began, its seconds, whether alone, and the innermost calls.
Judges write to `calls.PID` how often a look at their main thread, five times a second, found which
calls. `device_trace_table.py` sums them up.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

_FOLDER = os.environ.get("DEVICE_TRACE", "")
_FRAMES = 6
_EACH_S, _WRITE_EACH = 0.2, 50


def _calls(frame: FrameType | None) -> list[str]:
    """Return the innermost calls of the package, as MODULE:FUNCTION:LINE."""
    found: list[str] = []
    while frame is not None and len(found) < _FRAMES:
        file = frame.f_code.co_filename
        if "/adaexplore/" in file and file != __file__:
            found.append(f"{Path(file).stem}:{frame.f_code.co_name}:{frame.f_lineno}")
        frame = frame.f_back
    return found


def _append(kind: str, began: float, exclusive: bool) -> None:
    now = time.time()
    record = [round(began, 3), round(now - began, 3), exclusive, _calls(sys._getframe(2))]
    with (Path(_FOLDER) / f"{kind}.{os.getpid()}").open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def _trace_lock(lock: ModuleType) -> None:
    take, release = vars(lock)["_take"], vars(lock)["_release"]
    since: dict[int, float] = {}

    def taken(fd: int, device: str, exclusive: bool) -> None:
        began = time.time()
        take(fd, device, exclusive)
        since[fd] = time.time()
        if device != "cpu":
            _append("waited", began, exclusive)

    def released(fd: int, device: str, exclusive: bool) -> None:
        release(fd, device, exclusive)
        if device != "cpu":
            _append("held", since.pop(fd), exclusive)

    vars(lock).update(_take=taken, _release=released)


def _trace_judge(judge: ModuleType) -> None:
    main: Callable[..., None] = vars(judge)["main"]

    def look(thread: int) -> None:
        seen: Counter[str] = Counter()
        for count in range(1, sys.maxsize):
            time.sleep(_EACH_S)
            seen[" < ".join(_calls(sys._current_frames().get(thread)))] += 1
            if count % _WRITE_EACH == 0:
                file = Path(_FOLDER) / f"calls.{os.getpid()}"
                file.write_text(json.dumps(seen), encoding="utf-8")

    def traced(*given: Any) -> None:
        thread = threading.get_ident()
        threading.Thread(target=look, args=[thread], daemon=True).start()
        main(*given)

    vars(judge).update(main=traced)


_TRACED = {
    "adaexplore.sandbox.lock": _trace_lock,
    "adaexplore.evaluate.judge.judge": _trace_judge,
}


class _Finder(importlib.abc.MetaPathFinder):
    """Traces a module once it is imported."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the import system's signature
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if name not in _TRACED:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        assert spec is not None
        loader: Any = spec.loader
        execute = loader.exec_module

        def execute_and_trace(module: ModuleType) -> None:
            execute(module)
            _TRACED[name](module)

        loader.exec_module = execute_and_trace
        return spec


if _FOLDER:
    sys.meta_path.insert(0, _Finder())
