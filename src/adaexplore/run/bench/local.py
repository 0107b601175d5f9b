"""Judging answers on this machine: a judge for each problem, on the devices that are named."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

from adaexplore.core.bench import BenchVerdict
from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.errors import AdaExploreError, BadInputError, BadProblemError
from adaexplore.core.problem import Language, Precision, Problem
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.run.api import read_source, syntax_failure
from adaexplore.run.bench.judge import AnswerGroup, Verdicts, verdict_on
from adaexplore.run.bench.own_tests import OwnTests
from adaexplore.run.job import Servers
from adaexplore.run.processes import describe, evaluator_on
from adaexplore.run.session import device_of, load_problem
from adaexplore.run.verdicts.take_over import taking_over


class LocalGroupJudge:
    """Judges the answers in the folder `path` here; `config.device` may name several devices."""

    def __init__(self, path: Path, config: Config) -> None:
        self._path = path
        self._config = config
        if config.ray:
            raise BadInputError("--ray: answers are judged on this machine; leave it out")
        asked = config.device.split(",") if config.device else [None]
        names = [device_of(name and name.strip()) for name in asked]
        self.has_gpu = names != ["cpu"]
        self._devices: SimpleQueue[str] = SimpleQueue()
        for i in range(config.parallel):
            self._devices.put(names[i % len(names)])
        self._servers = Servers()
        self._own_tests = OwnTests(path, config.timeout_s, int(config.memory_gb * 2**30))
        self._describing = threading.Lock()
        self._environments: dict[tuple[str, Language], Environment] = {}

    @contextmanager
    def device(self) -> Iterator[str]:
        """See `GroupJudge`."""
        device = self._devices.get()
        try:
            yield device
        finally:
            self._devices.put(device)

    def judge(self, group: AnswerGroup, precision: Precision, device: str) -> Verdicts:
        """See `GroupJudge`."""
        given = {"device": device, "language": group.language, "precision": precision}
        config = self._config.model_copy(update=given)
        blank = BenchVerdict(group.entries[0], precision, group.language, device, None)
        pending = list(group.entries)
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
                while pending:
                    entry = pending[0]
                    candidate = Candidate(read_source(self._path / entry.answer), group.language)
                    found = syntax_failure(candidate) or evaluator.evaluate(candidate)
                    yield verdict_on(blank, entry, found)
                    del pending[0]
        except BadProblemError as error:
            for entry in pending:
                yield replace(blank, entry=entry, unjudged=str(error))
        except (AdaExploreError, OSError, RuntimeError) as error:
            lost = Failed("infra_error", f"{type(error).__name__}: {error}")
            for entry in pending:
                yield replace(blank, entry=entry, evaluation=lost)

    def stop(self) -> None:
        """See `GroupJudge`."""
        self._servers.close()

    def _environment(self, problem: Problem) -> Environment:
        """Return the description of the machine, made once for a device and a language."""
        with self._describing:
            key = (problem.device, problem.language)
            if key not in self._environments:
                self._environments[key] = describe(self._servers.get(problem), problem)
            return self._environments[key]
