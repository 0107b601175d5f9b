"""Verdicts that follow from the candidate alone, so that searches can be repeated exactly."""

import hashlib

from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.core.verdict.facts import ReferenceFacts

FACTS = ReferenceFacts(baselines_us={"eager": 10.0})


def number_from(*parts) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4], "big")


class Judge:
    """Judges by the candidate's hash."""

    def __init__(self, facts=FACTS):
        self._facts = facts

    def prepare(self):
        return self._facts

    def evaluate(self, candidate, parent=None, *, again=False):
        number = number_from(candidate.source)
        if number % 4 == 0:
            return Failed("wrong_output", "as computed")
        speedup = 0.5 + number % 1000 / 500
        timing = Timing(9.0, (9.0, 9.0), {"eager": 9.0}, speedup, (speedup, speedup), speedup, 7)
        return Passed("fp32", 1e-7, timing)

    def close(self):
        pass
