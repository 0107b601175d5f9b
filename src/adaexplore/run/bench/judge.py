"""Judging the answers of a folder that `collect` made; what is recorded is not judged again."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from adaexplore.core.bench import BenchEntry, BenchVerdict
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import PRECISIONS, Language, Precision
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Evaluation, Failed
from adaexplore.problems.benchmarks.arguments import NO_COUNTERPART
from adaexplore.run.api import read_source
from adaexplore.run.workers import map_parallel
from adaexplore.store.bench import (
    BenchManifest,
    append_verdict,
    mend_verdicts,
    read_verdicts,
)
from adaexplore.store.directory import hold_lock

HOPELESS = 0.1
"""Relative error from which no looser class is tried: bfloat16 autocast is 10 times better."""

_BUILT = re.compile(r"\bload_inline\b|\bcpp_extension\b")
OnVerdict = Callable[[BenchVerdict], None]
Verdicts = Generator[BenchVerdict, None, None]


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """Answers to one problem in one language: they share a judge."""

    problem: str
    language: Language
    entries: tuple[BenchEntry, ...]
    stricter: Mapping[tuple[str, str, str], BenchVerdict] = field(default_factory=dict)
    """The verdicts of the stricter class before, by the entry's id."""


class GroupJudge(Protocol):
    """A place that judges answers: this machine, or a service. Threads share it."""

    @property
    def has_gpu(self) -> bool:
        """True where answers are kernels for a GPU."""
        ...

    def device(self) -> AbstractContextManager[str]:
        """Hold a device for a group; its name ("cpu", "cuda:0"), empty where it is not known."""
        ...

    def judge(self, group: AnswerGroup, precision: Precision, device: str) -> Verdicts:
        """Yield a verdict on each answer of a group in one class, in order."""
        ...

    def stop(self) -> None:
        """End what is at work; another thread calls it."""
        ...


class BenchJudging:
    """Judges the open entries of a folder, `config.parallel` problems at once.

    `config.budget` is a time; entries that are at work when it is over stay open. `tell` gets every
    verdict once it is recorded; one thread at a time calls it.
    """

    def __init__(
        self,
        path: Path,
        manifest: BenchManifest,
        config: Config,
        judge: GroupJudge,
        tell: OnVerdict,
    ) -> None:
        self._path = path
        self._manifest = manifest
        self._config = config
        self._place = judge
        self._tell = tell
        self._limit_s = _time_limit(config)
        self._over = threading.Event()
        self._recording = threading.Lock()

    def run(self) -> None:
        """Judge until nothing is open or the time is over; every verdict is recorded at once.

        Raises `BadInputError` if another process judges in the folder.
        """
        with hold_lock(self._path):
            mend_verdicts(self._path)
            timer = threading.Timer(self._limit_s or threading.TIMEOUT_MAX, self._stop)
            timer.daemon = True
            timer.start()
            try:
                groups = self._groups(open_entries(self._path, self._manifest))
                for landed in map_parallel(groups, self._judge, self._config.parallel):
                    if landed.error:
                        raise landed.error
            finally:
                timer.cancel()
                self._stop()

    def _stop(self) -> None:
        self._over.set()
        self._place.stop()

    def _groups(self, entries: Sequence[BenchEntry]) -> list[AnswerGroup]:
        """Return the entries by problem and language, in the order of the first of each."""
        members: dict[tuple[str, Language], list[BenchEntry]] = {}
        for entry in entries:
            language = self._config.language or self._language(entry)
            members.setdefault((entry.problem, language), []).append(entry)
        return [AnswerGroup(*key, tuple(some)) for key, some in members.items()]

    def _language(self, entry: BenchEntry) -> Language:
        """Return the language of an answer's kernels, as its judge must know it."""
        if not self._place.has_gpu:
            return "cpp"
        source = read_source(self._path / entry.answer)
        return "cuda" if _BUILT.search(source) else "triton"

    def _judge(self, group: AnswerGroup) -> None:
        """Judge a group, and what may pass as looser in the looser classes after it."""
        with self._place.device() as device:
            classes = self._classes(device)
            for precision in classes:
                if group.entries and not self._over.is_set():
                    is_last = precision == classes[-1]
                    left = self._judge_in(group, precision, device, is_last=is_last)
                    entries = tuple(verdict.entry for verdict in left)
                    stricter = {verdict.entry.id: verdict for verdict in left}
                    group = replace(group, entries=entries, stricter=stricter)

    def _classes(self, device: str) -> Sequence[Precision]:
        """Return the classes to judge in, strictest first; there is no TF32 on a CPU."""
        first = PRECISIONS.index(self._config.precision)
        looser = PRECISIONS[first + 1 :] if self._manifest.or_looser else ()
        return (PRECISIONS[first], *(p for p in looser if p != "tf32" or device != "cpu"))

    def _judge_in(
        self, group: AnswerGroup, precision: Precision, device: str, *, is_last: bool
    ) -> list[BenchVerdict]:
        """Judge a group in one class; return the verdicts on what to judge in a looser one."""
        looser = []
        with closing(self._place.judge(group, precision, device)) as verdicts:
            for verdict in verdicts:
                if self._over.is_set():
                    break
                stricter = group.stricter.get(verdict.entry.id)
                if verdict.unjudged and stricter:
                    self._record(_standing(stricter, verdict))
                elif not is_last and _may_pass_looser(verdict.evaluation):
                    looser.append(verdict)
                else:
                    self._record(verdict)
        return looser

    def _record(self, verdict: BenchVerdict) -> None:
        """Record a verdict, unless the end of the time made it."""
        with self._recording:
            if not self._over.is_set():
                append_verdict(self._path, verdict)
                self._tell(verdict)


def open_entries(path: Path, manifest: BenchManifest) -> list[BenchEntry]:
    """Return the entries without a verdict that counts, in their order."""
    verdicts = read_verdicts(path, manifest.entries)
    done = {verdict.entry.id for verdict in verdicts if verdict.is_final}
    return [entry for entry in manifest.entries if entry.id not in done]


def verdict_on(blank: BenchVerdict, entry: BenchEntry, found: Evaluation) -> BenchVerdict:
    """Return `blank` with an entry and the evaluation of its answer, if anybody can call that."""
    if entry.adapted and isinstance(found, Failed) and NO_COUNTERPART in found.reason:
        return replace(blank, entry=entry, unjudged=found.reason)
    return replace(blank, entry=entry, evaluation=found)


def _standing(stricter: BenchVerdict, unjudged: BenchVerdict) -> BenchVerdict:
    """Return the verdict of the stricter class, with the reason why the looser one has none."""
    found = stricter.evaluation
    assert isinstance(found, Failed)
    reason = f"{found.reason}; cannot be judged in class {unjudged.precision}: {unjudged.unjudged}"
    return replace(stricter, evaluation=replace(found, reason=reason))


def _may_pass_looser(found: Evaluation | None) -> bool:
    error = found.error if found and found.status == "wrong_output" else None
    return error is not None and error < HOPELESS


def _time_limit(config: Config) -> float | None:
    """Return the budget in seconds; raise `BadInputError` for one of something else."""
    limits = config.limits
    if config.budget and limits.seconds is None:
        raise BadInputError(f"--budget {config.budget}: bench spends time alone; write 30min or 2h")
    return limits.seconds
