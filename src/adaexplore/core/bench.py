"""An answer to a task of a benchmark, and the verdict on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from adaexplore.core import codec
from adaexplore.core.problem import Language, Precision
from adaexplore.core.verdict.evaluation import Evaluation
from adaexplore.core.verdict.evaluation_json import evaluation_from_json, evaluation_to_json


@dataclass(frozen=True, slots=True)
class TheirVerdict:
    """The verdict that a collection records beside an answer.

    `said` is the verdict in its words, `right` what it means, None where it says nothing about
    that. `time_us` is the time and `speedup` the speedup that it claims, None without one. `called`
    says whether the benchmark's own test of the answer came to its end, None without such a test.
    """

    said: str
    right: bool | None
    time_us: float | None = None
    speedup: float | None = None
    called: bool | None = None


@dataclass(frozen=True, slots=True)
class BenchEntry:
    """An answer to judge: `problem` and `answer` are files of the folder, `digest` the answer's.

    `place` says where in its collection the answer was found; see `Answer` for `adapted` and
    `theirs`. `script` and `gold` are files of the benchmark's own test, and `golden_us` is a time,
    as `OwnTest` has them.
    """

    collection: str
    key: str
    category: str
    place: str
    problem: str
    answer: str
    digest: str
    adapted: bool = False
    theirs: TheirVerdict | None = None
    script: str = ""
    gold: str = ""
    golden_us: float | None = None

    @property
    def id(self) -> tuple[str, str, str]:
        """Identity in the folder."""
        return (self.collection, self.place, self.digest)


@dataclass(frozen=True, slots=True)
class LeftOutAnswer:
    """An answer that is not judged, with the reason in one line."""

    collection: str
    key: str
    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class BenchVerdict:
    """The verdict on an entry, in the class `precision`, the loosest allowed when it was reached.

    `unjudged` says why there is none: the problem cannot be verified against, or nobody can call
    the answer; then `evaluation` is None. `problem_digest` identifies the problem, `labels` are the
    problem's, each with its reason.
    """

    entry: BenchEntry
    precision: Precision
    language: Language
    device: str
    evaluation: Evaluation | None
    unjudged: str = ""
    problem_digest: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_final(self) -> bool:
        """False for trouble of the machinery: it says nothing about the answer."""
        return self.evaluation is None or self.evaluation.status != "infra_error"

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` reads back."""
        judged = evaluation_to_json(self.evaluation) if self.evaluation else None
        return {
            "entry": asdict(self.entry),
            "precision": self.precision,
            "language": self.language,
            "device": self.device,
            "unjudged": self.unjudged,
            "problem_digest": self.problem_digest,
            "labels": dict(self.labels),
            "evaluation": judged,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> BenchVerdict:
        """Inverse of `to_json`."""
        judged = data["evaluation"]
        read = {
            "entry": codec.read(BenchEntry, data["entry"]),
            "evaluation": evaluation_from_json(judged) if judged else None,
        }
        return BenchVerdict(**{**data, **read})
