"""The progress of a search or an evaluation on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from adaexplore.cli.terminal.waits import DeviceWatch
from adaexplore.core.node import Node, StepKind
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.listener import Listener
from adaexplore.core.verdict.evaluation import Estimate, Failed
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.report.text import claim, duration_us, estimate, one_line
from adaexplore.run.starts import starts_of
from adaexplore.store import read_run


class EvaluationProgress(Listener):
    """A spinner with the preparation under way; on a console that is no terminal, a line each.

    `device` finds the device of this machine that the evaluation uses, once there is work; None is
    for another machine's.
    """

    def __init__(self, console: Console, device: Callable[[], str] | None) -> None:
        self._console = console
        self._spinner = console.status("")
        self._device = device
        self._watch: DeviceWatch | None = None

    def __enter__(self) -> EvaluationProgress:
        if self._console.is_terminal:
            self._spinner.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._watch:
            self._watch.stop()
        self._spinner.stop()

    def working(self, activity: str) -> None:
        """See `Listener`."""
        if self._device and not self._watch:
            self._watch = DeviceWatch(self._device(), self.notice)
            self._watch.start()
        if self._console.is_terminal:
            self._spinner.update(activity)
        else:
            self._console.print(activity, highlight=False)

    def notice(self, text: str) -> None:
        """See `Listener`."""
        self._console.print(text, style="yellow", highlight=False, markup=False)

    def prepared(self, facts: ReferenceFacts) -> None:  # noqa: ARG002
        """See `Listener`."""
        self.working("evaluating the candidate")


class SearchProgress(Listener):
    """A bar for the steps and a line for each result; a `Listener`."""

    def __init__(self, console: Console, *, variants: int = 0) -> None:
        self._console = console
        self._variants = variants
        self.is_open = False
        self._watch: DeviceWatch | None = None
        self._steps = 0
        self._proposing: set[int] = set()
        self._evaluating = 0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> SearchProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._watch:
            self._watch.stop()
        self._bar.stop()

    def working(self, activity: str) -> None:
        """See `Listener`."""
        self._say(activity)
        if not self._console.is_terminal:
            self._line(activity)

    def notice(self, text: str) -> None:
        """See `Listener`."""
        self._bar.console.print(text, style="yellow", highlight=False, markup=False)

    def opened(self, path: Path) -> None:
        """See `Listener`."""
        self.is_open = True
        with read_run(path) as directory:
            run, done = directory.store.run(), directory.store.node_count()
        if not run.config.ray:
            self._watch = DeviceWatch(run.problem.device, self.notice)
            self._watch.start()
        planned = len(starts_of(run)) + run.steps + run.config.tune
        self._steps = done + self._variants if self._variants else planned
        self._line(f"mode of the reference: {run.problem.mode}")
        self._bar.update(self._task, total=self._steps, completed=done)

    def prepared(self, facts: ReferenceFacts) -> None:
        """See `Listener`."""
        times = [f"{name} {duration_us(t)}" for name, t in facts.baselines_us.items()]
        verified = f"verified on {len(facts.input_sets)} input sets ({', '.join(facts.input_sets)})"
        self._line(
            f"reference: {', '.join(times)}; {verified}" if times else f"reference {verified}"
        )
        for name, why in facts.labels.items():
            self._line(f"label: {name}: {why}")
        for note in facts.notes:
            self._line(f"note: {note}")

    def step_begun(self, step: int, step_kind: StepKind) -> None:
        """See `Listener`."""
        self._proposing.add(step)
        self._say_under_way(f"step {step}: proposing ({step_kind})")

    def waiting(self, reason: str, wait_s: float) -> None:
        """See `Listener`."""
        self._line(f"{reason}; again in {wait_s:.0f} s")

    def stopping(self, reason: str) -> None:
        """See `Listener`."""
        self._line(f"stopping: {reason}")

    def evaluating(self, step: int, proposal: Proposal) -> None:
        """See `Listener`."""
        self._proposing.discard(step)
        self._evaluating += 1
        self._say_under_way(f"step {step}: evaluating {one_line(proposal.note, 40)}")

    def remeasuring(self, step: int, proposal: Proposal) -> None:
        """See `Listener`."""
        self._say_under_way(f"step {step}: measuring {one_line(proposal.note, 40)} once more")

    def recorded(self, node: Node, *, best: bool) -> None:
        """See `Listener`."""
        self._bar.update(self._task, completed=node.id)
        self._evaluating -= 1
        self._say_under_way("")
        evaluation = node.evaluation
        if isinstance(evaluation, Failed):
            result = f"{evaluation.status}: {one_line(evaluation.reason, 60)}"
        elif isinstance(evaluation.timing, Estimate):
            result = f"correct, {estimate(evaluation.timing)}"
        else:
            timing = evaluation.timing
            result = f"{claim(timing)}  {duration_us(timing.time_us)}"
            result += "  best so far" if best else ""
        again = " (from the cache)" if evaluation.taken_over else ""
        again = " (seen before)" if node.reused else again
        note = one_line(node.proposal.note, 48)
        self._line(
            f"step {node.id:>3}/{self._steps}  {node.step_kind:<5}  {note:<48}  {result}{again}"
        )

    def confirming(self, node: Node) -> None:
        """See `Listener`."""
        self._say(f"measuring step {node.id}, one of the best, again in a fresh process")
        if not self._console.is_terminal:
            self._line(f"confirming step {node.id} in a fresh process")

    def _say_under_way(self, only: str) -> None:
        """Show one activity, or the number of steps in each stage."""
        if len(self._proposing) + self._evaluating > 1:
            only = f"{len(self._proposing)} proposing, {self._evaluating} in evaluation"
        self._say(only)

    def _say(self, text: str) -> None:
        self._bar.update(self._task, description=text)

    def _line(self, text: str) -> None:
        self._bar.console.print(text, highlight=False, markup=False, soft_wrap=True)
