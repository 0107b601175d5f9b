"""Judging the answers of a folder that `collect` made; what is recorded is not judged again."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue

from adaexplore.core.bench import BenchEntry, BenchVerdict
from adaexplore.core.candidate import Candidate
from adaexplore.core.config import Config
from adaexplore.core.environment import Environment
from adaexplore.core.errors import (
    AdaExploreError,
    BadInputError,
    BadProblemError,
)
from adaexplore.core.evaluation import Evaluation, Failed
from adaexplore.core.problem import PRECISIONS, Language, Precision, Problem
from adaexplore.problems.benchmarks.arguments import NO_COUNTERPART
from adaexplore.run.api import read_source, syntax_failure
from adaexplore.run.bench.own_tests import OwnTests
from adaexplore.run.job import Servers
from adaexplore.run.processes import describe, evaluator_on
from adaexplore.run.session import device_of, load_problem
from adaexplore.run.take_over import taking_over
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


@dataclass(frozen=True, slots=True)
class _Group:
    """Answers to one problem in one language: they share a judge."""

    problem: str
    language: Language
    entries: tuple[BenchEntry, ...]
    stricter: Mapping[tuple[str, str, str], BenchVerdict] = field(default_factory=dict)
    """The verdicts of the stricter class before, by the entry's id."""


class BenchJudging:
    """Judges the open entries of a folder, `config.parallel` problems at once.

    `config.device` may name several devices by commas. `config.budget` is a time; entries that are
    at work when it is over stay open. `tell` gets every verdict once it is recorded; one thread at
    a time calls it.
    """

    def __init__(
        self, path: Path, manifest: BenchManifest, config: Config, tell: OnVerdict
    ) -> None:
        self._path = path
        self._manifest = manifest
        self._config = config
        self._tell = tell
        if config.ray:
            raise BadInputError("--ray: answers are judged on this machine; leave it out")
        self._limit_s = _time_limit(config)
        asked = config.device.split(",") if config.device else [None]
        self._names = [device_of(name and name.strip()) for name in asked]
        self._devices: SimpleQueue[str] = SimpleQueue()
        for i in range(config.parallel):
            self._devices.put(self._names[i % len(self._names)])
        self._servers = Servers()
        self._own_tests = OwnTests(path, config.timeout_s, int(config.memory_gb * 2**30))
        self._over = threading.Event()
        self._recording = threading.Lock()
        self._describing = threading.Lock()
        self._environments: dict[tuple[str, Language], Environment] = {}

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
        self._servers.close()

    def _groups(self, entries: Sequence[BenchEntry]) -> list[_Group]:
        """Return the entries by problem and language, in the order of the first of each."""
        members: dict[tuple[str, Language], list[BenchEntry]] = {}
        for entry in entries:
            language = self._config.language or self._language(entry)
            members.setdefault((entry.problem, language), []).append(entry)
        return [_Group(*key, tuple(some)) for key, some in members.items()]

    def _language(self, entry: BenchEntry) -> Language:
        """Return the language of an answer's kernels, as its judge must know it."""
        if self._names == ["cpu"]:
            return "cpp"
        source = read_source(self._path / entry.answer)
        return "cuda" if _BUILT.search(source) else "triton"

    def _judge(self, group: _Group) -> None:
        """Judge a group, and what may pass as looser in the looser classes after it."""
        device = self._devices.get()
        try:
            classes = self._classes(device)
            for precision in classes:
                if group.entries and not self._over.is_set():
                    is_last = precision == classes[-1]
                    left = self._judge_in(group, precision, device, is_last=is_last)
                    entries = tuple(verdict.entry for verdict in left)
                    stricter = {verdict.entry.id: verdict for verdict in left}
                    group = replace(group, entries=entries, stricter=stricter)
        finally:
            self._devices.put(device)

    def _classes(self, device: str) -> Sequence[Precision]:
        """Return the classes to judge in, strictest first; there is no TF32 on a CPU."""
        first = PRECISIONS.index(self._config.precision)
        looser = PRECISIONS[first + 1 :] if self._manifest.or_looser else ()
        return (PRECISIONS[first], *(p for p in looser if p != "tf32" or device != "cpu"))

    def _judge_in(
        self, group: _Group, precision: Precision, device: str, *, is_last: bool
    ) -> list[BenchVerdict]:
        """Judge a group in one class; return the verdicts on what to judge in a looser one."""
        given = {"device": device, "language": group.language, "precision": precision}
        config = self._config.model_copy(update=given)
        blank = BenchVerdict(group.entries[0], precision, group.language, device, None)
        pending, looser = list(group.entries), list[BenchVerdict]()
        try:
            problem = load_problem(self._path / group.problem, config)
            server = self._servers.get(problem)
            pending = [self._own_tests.tested(entry, server, device) for entry in pending]
            environment = self._environment(problem)
            blank = replace(blank, device=environment.gpu or device)
            with (
                closing(evaluator_on(server, problem, config)) as judge,
                taking_over(judge, problem, config, environment) as evaluator,
            ):
                labels = evaluator.prepare().labels
                blank = replace(blank, problem_digest=problem.digest, labels=labels)
                while pending and not self._over.is_set():
                    entry = pending[0]
                    candidate = Candidate(read_source(self._path / entry.answer), group.language)
                    found = syntax_failure(candidate) or evaluator.evaluate(candidate)
                    verdict = _verdict(blank, entry, found)
                    if _may_pass_looser(found) and not is_last:
                        looser.append(verdict)
                    else:
                        self._record(verdict)
                    del pending[0]
        except BadProblemError as error:
            for entry in pending:
                unjudged = replace(blank, entry=entry, unjudged=str(error))
                stricter = group.stricter.get(entry.id)
                self._record(_standing(stricter, unjudged) if stricter else unjudged)
        except (AdaExploreError, OSError, RuntimeError) as error:
            lost = Failed("infra_error", f"{type(error).__name__}: {error}")
            for entry in pending:
                self._record(replace(blank, entry=entry, evaluation=lost))
        return looser

    def _environment(self, problem: Problem) -> Environment:
        """Return the description of the machine, made once for a device and a language."""
        with self._describing:
            key = (problem.device, problem.language)
            if key not in self._environments:
                self._environments[key] = describe(self._servers.get(problem), problem)
            return self._environments[key]

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


def _verdict(blank: BenchVerdict, entry: BenchEntry, found: Evaluation) -> BenchVerdict:
    if entry.adapted and isinstance(found, Failed) and NO_COUNTERPART in found.reason:
        return replace(blank, entry=entry, unjudged=found.reason)
    return replace(blank, entry=entry, evaluation=found)


def _standing(stricter: BenchVerdict, unjudged: BenchVerdict) -> BenchVerdict:
    """Return the verdict of the stricter class, with the reason why the looser one has none."""
    found = stricter.evaluation
    assert isinstance(found, Failed)
    reason = f"{found.reason}; cannot be judged in class {unjudged.precision}: {unjudged.unjudged}"
    return replace(stricter, evaluation=replace(found, reason=reason))


def _may_pass_looser(found: Evaluation) -> bool:
    error = found.error
    return found.status == "wrong_output" and error is not None and error < HOPELESS


def _time_limit(config: Config) -> float | None:
    """Return the budget in seconds; raise `BadInputError` for one of something else."""
    limits = config.limits
    if config.budget and limits.seconds is None:
        raise BadInputError(f"--budget {config.budget}: bench spends time alone; write 30min or 2h")
    return limits.seconds
