"""The lines of `adaexplore adapt` where a memory grows from task to task."""

from __future__ import annotations

from collections import Counter

from rich.console import Console

from adaexplore.cli.terminal.printing import say
from adaexplore.core.settings.config import Config
from adaexplore.run.learning.growth import Grown, TaskRecord
from adaexplore.run.learning.lessons import Lessons


class GrowthView:
    """Prints a line for each of `tasks` tasks, and a summary at the end."""

    def __init__(self, console: Console, tasks: int, lessons: Lessons, config: Config) -> None:
        self._console = console
        self._tasks = tasks
        self._lessons = lessons
        self._config = config
        self._records: list[TaskRecord] = []
        self._waits: list[str] = []
        self._new = 0

    def show(self, grown: Grown) -> None:
        """Print the result of a task; nothing for one that was through before."""
        name = grown.task.problem.name
        if grown.lost:
            say(self._console, f"{name}: left out: {grown.lost}")
        for path in grown.waits:
            self._waits.append(f"{path}: answer in {path.stem}.reply.md")
        if grown.record is None:
            return
        self._records.append(grown.record)
        if not grown.earlier:
            self._new += 1
            say(self._console, f"{name}: {self._line(grown.record)}; {self._memory()}")

    def show_end(self) -> None:
        """Print the summary of all tasks that are through, and the prompts that wait."""
        steps, correct = (sum(getattr(r, n) for r in self._records) for n in ("steps", "correct"))
        failures = sum((Counter(r.failures) for r in self._records), Counter[str]())
        say(
            self._console,
            f"{len(self._records)} of {self._tasks} tasks, {steps} steps: {correct} correct, "
            f"{_failed(failures)}",
        )
        learned = sum(len(record.learned) for record in self._records)
        counted, dropped = (
            sum(getattr(r, n) for r in self._records) for n in ("counted", "dropped")
        )
        say(
            self._console,
            f"{learned} rules learned, {self._how}; {counted} counted for known rules, {dropped} "
            f"without a rule; {self._memory()}",
        )
        for line in self._waits:
            say(self._console, f"{line}, and run the same command again")

    @property
    def _how(self) -> str:
        return "unchecked" if self._config.learning == "published" else "checked"

    def _line(self, record: TaskRecord) -> str:
        lessons = [f"{len(record.learned)} new rules, {self._how}"]
        lessons += [f"{record.counted} counted"] if record.counted else []
        lessons += [f"{record.dropped} without a rule"] if record.dropped else []
        failed = _failed(Counter(record.failures))
        at = f"{len(self._records)} of {self._tasks}"
        return f"({at}) {record.steps} steps, {record.correct} correct, {failed}; " + ", ".join(
            lessons
        )

    def _memory(self) -> str:
        rules, least = self._lessons.rules(), self._config.memory_threshold
        shown = f", {sum(r.support >= least for r in rules)} of them in prompts" if least else ""
        return f"{len(rules)} rules in memory{shown}"


def _failed(failures: Counter[str]) -> str:
    kinds = ", ".join(f"{number} {status}" for status, number in failures.most_common())
    return f"{failures.total()} failed" + (f" ({kinds})" if kinds else "")
