"""TritonBench as two benchmarks, one for each channel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.benchmark import (
    Answer,
    BenchmarkNeeds,
    BenchmarkTask,
    Exclusion,
)
from adaexplore.problems.benchmarks.scripted.answer import with_module
from adaexplore.problems.benchmarks.scripted.function import UnusableError
from adaexplore.problems.benchmarks.scripted.text import WrittenTask
from adaexplore.problems.benchmarks.tritonbench.predictions import (
    PredictedLine,
    TaskPrompts,
    predictions_in,
    source_of,
)
from adaexplore.problems.benchmarks.tritonbench.tasks import Channel, Checkout


@dataclass(frozen=True, slots=True)
class TritonBench:
    """The tasks of a channel that have a file of timings, keyed by their file's name."""

    name: str
    about: str
    channel: Channel
    needs: BenchmarkNeeds

    def tasks(self, data: Path) -> Sequence[BenchmarkTask]:
        """See `Benchmark.tasks`."""
        checkout = Checkout(data, self.channel)
        return [
            BenchmarkTask(key, checkout.category(key), f"{key}.py", found.text)
            for key, found in _read(checkout)
            if isinstance(found, WrittenTask)
        ]

    def excluded(self, data: Path) -> Sequence[Exclusion]:
        """See `Benchmark.excluded`."""
        checkout = Checkout(data, self.channel)
        return [
            Exclusion(key, checkout.category(key), found)
            for key, found in _read(checkout)
            if isinstance(found, str)
        ]

    def answers(self, folder: Path, data: Path | None) -> Sequence[Answer]:
        """See `Benchmark.answers`; files that answer no task of the channel have none."""
        found = list(predictions_in(folder))
        if not found:
            return []
        if data is None:
            raise BadInputError(
                f"--answers {folder}: the prompts of {self.name} are matched with its tasks: give "
                "a clone by --data"
            )
        checkout = Checkout(data, self.channel)
        written = dict(_read(checkout))
        tasks = TaskPrompts(checkout.described)
        answers = []
        for _, rows in groupby(found, key=lambda one: one.file):
            keyed = [(one, tasks.key_of(one)) for one in rows]
            if any(key in written for _, key in keyed):  # else a file for the other channel
                answers += [_answer(one, key or "?", written, checkout) for one, key in keyed]
        return sorted(answers, key=lambda each: each.key)


def _answer(
    one: PredictedLine, key: str, written: Mapping[str, WrittenTask | str], checkout: Checkout
) -> Answer:
    """Return a prediction as an answer; as it is where its task is no problem."""
    task = written.get(key)
    if not isinstance(task, WrittenTask):
        return Answer(key, one.place, one.predict)
    source = with_module(source_of(one, task.name), task.text, (task.name,))
    test = checkout.test(key, one.predict, task.place)
    return Answer(key, one.place, source, adapted=True, test=test)


def _read(checkout: Checkout) -> Iterator[tuple[str, WrittenTask | str]]:
    """Yield every task of a checkout as a problem, or the reason why it is none."""
    for key in checkout.keys:
        try:
            yield key, checkout.written(key)
        except UnusableError as error:
            yield key, str(error)


_NEEDS = BenchmarkNeeds(folder="TritonBench", get="git clone https://github.com/thunlp/TritonBench")
TRITONBENCH_T = TritonBench(
    "tritonbench-t", "166 PyTorch functions by difficulty, at the sizes that it times", "T", _NEEDS
)
TRITONBENCH_G = TritonBench(
    "tritonbench-g",
    "184 Triton kernels from GitHub by difficulty, which nothing independent checks",
    "G",
    _NEEDS,
)


def channel_named(name: str) -> Channel:
    """Return the channel of a benchmark's name; raise `BadInputError` for another benchmark."""
    for one in (TRITONBENCH_T, TRITONBENCH_G):
        if one.name == name:
            return one.channel
    raise BadInputError(
        f"--for {name}: {TRITONBENCH_T.name} and {TRITONBENCH_G.name} have prompts to answer"
    )
