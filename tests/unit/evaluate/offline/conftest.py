"""Judges of Triton candidates without a GPU; tests share one judge per problem."""

import textwrap
from dataclasses import dataclass, field

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Checks, Problem
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.sandbox.process import ForkServer

_TIMEOUT_S = 600.0
_MEMORY_BYTES = 8 << 30


@dataclass
class Judges:
    """A function that evaluates the source of a candidate; each source is evaluated once."""

    server: ForkServer
    made: dict = field(default_factory=dict)
    verdicts: dict = field(default_factory=dict)

    def __call__(self, problem, candidate, *, target="sm_90", timeout_s=_TIMEOUT_S, **options):
        key = (problem, target, timeout_s, tuple(options.items()))
        if key not in self.made:
            self.made[key] = OfflineEvaluator(
                self.server,
                Problem(
                    "example",
                    textwrap.dedent(problem),
                    "triton",
                    "cpu",
                    checks=Checks(**options),
                    target=target,
                ),
                timeout_s=timeout_s,
                memory_bytes=_MEMORY_BYTES,
            )
        asked = (*key, candidate)
        if asked not in self.verdicts:
            source = Candidate(textwrap.dedent(candidate), "triton")
            self.verdicts[asked] = self.made[key].evaluate(source)
        return self.verdicts[asked]

    def close(self):
        for evaluator in self.made.values():
            evaluator.close()


@pytest.fixture(scope="session")
def judge(server):
    judges = Judges(server)
    yield judges
    judges.close()
