"""A run on disk, for Python and notebooks."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaexplore.core.errors import BadInputError
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.listener import Event, follow
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.configure import make_config
from adaexplore.core.verdict.evaluation import Evaluation, Timing
from adaexplore.report import Summary
from adaexplore.run import explore as application
from adaexplore.run.live import capture_module, module_of
from adaexplore.run.outcome.results import summary_of
from adaexplore.run.parts import Parts, take_objects
from adaexplore.store import RunRecord, read_run
from adaexplore.store.directory import MODULE_NAME

if TYPE_CHECKING:
    from torch import nn

    from adaexplore.problems.optimized import Captured


class Run:
    """A run on disk: its problem, its steps and its winner, read anew at every access.

    Raises `BadInputError` for a folder that is no run.
    """

    def __init__(
        self, path: str | Path, *, parts: Parts | None = None, captured: Captured | None = None
    ) -> None:
        self.path = Path(path)
        self._parts = parts or Parts()
        self._captured = captured
        read_run(self.path).close()

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.record.problem

    @property
    def record(self) -> RunRecord:
        """The order and the place of the run: seed, settings, machine, plan."""
        with read_run(self.path) as directory:
            return directory.store.run()

    @property
    def nodes(self) -> list[Node]:
        """Every recorded step, in order."""
        with read_run(self.path) as directory:
            return directory.store.nodes()

    @property
    def best(self) -> Node | None:
        """The winner; None while no step is correct."""
        summary = self.summary
        return summary.best.node if summary.best else None

    @property
    def verdict(self) -> Evaluation | None:
        """The evaluation that counts for the winner: its confirmation, or the search's own."""
        leader = self.summary.leader
        return leader.evaluation if leader else None

    @property
    def timing(self) -> Timing | None:
        """The times that the run claims; None where nothing is claimed or nothing was measured."""
        return self.summary.headline.timing

    @property
    def speedup(self) -> float | None:
        """The like-for-like speedup that the run claims; None where it claims none.

        The lower end of the interval where the measurement was noisy, or calls are too short to
        prove more. None for a gain that was measured under load.
        """
        timing = self.timing
        return None if timing is None or timing.is_under_load else timing.claim

    @property
    def speedup_ci(self) -> tuple[float, float] | None:
        """The 95 % interval of `speedup`."""
        return self.timing.speedup_ci if self.timing else None

    @property
    def best_source(self) -> str:
        """The source of the winner.

        Raises `BadInputError` while no step is correct.
        """
        best = self.best
        if best is None:
            raise BadInputError(f"{self.path} has no correct kernel yet")
        return best.candidate.source

    def best_module(
        self, module: nn.Module | None = None, inputs: Any = (), *, kwargs: Any = None
    ) -> nn.Module:
        """Return the winner as a module, for inference.

        For the run of a module, it takes the arguments of that module and holds the weights that
        the module has now. Give the module and its example inputs again for a run that was opened
        from its folder. For the run of a problem's file, it is the winner's `ModelNew` with the
        weights of the reference.

        Raises `BadInputError` while no step is correct.
        """
        source, folder = self.best_source, self.path.resolve() / MODULE_NAME
        folder.mkdir(exist_ok=True)
        captured = self._captured
        if module is not None:
            again = folder / "again"
            captured = capture_module(module, inputs, kwargs, Config(), again)
        if captured is not None:
            return captured.optimized(source, folder)
        if (folder / "problem.py").exists():
            raise BadInputError(
                f"{self.path} is the run of a module: call best_module(module, inputs)"
            )
        return module_of(self.problem, source, folder)

    @property
    def summary(self) -> Summary:
        """The figures of the report."""
        with read_run(self.path) as directory:
            return summary_of(directory.store, self.path)

    @property
    def report_path(self) -> Path:
        """The report, an HTML page that needs no other file."""
        return self.path / "report.html"

    def resume(
        self,
        steps: int | None = None,
        *,
        listener: Callable[[Event], None] | None = None,
        **changes: Any,
    ) -> Run:
        """Continue the run to `steps` steps in total; without it, to those planned.

        `changes` are `parallel`, `budget`, `base_url` and `prompts`, and the objects that `explore`
        takes; without any, those that this `Run` was made with are used. Raises as
        `adaexplore.optimize` does.
        """
        parts, rest = take_objects(changes)
        given = make_config(rest if steps is None else {"steps": steps, **rest})
        parts = self._parts if parts == Parts() else parts
        follow(application.resume(self.path, given, parts), listener)
        return self

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}): {self.summary.headline.sentence}"

    def _repr_html_(self) -> str:
        headline = self.summary.headline
        lines = [
            f"<b>{escape(headline.sentence)}</b>",
            escape(headline.caveat),
            self.summary.progress,
            f'<a href="{escape(str(self.report_path))}">{escape(str(self.report_path))}</a>',
        ]
        return "<br>".join(line for line in lines if line)
