"""Facts about a reference that has not run: its shapes and work, at the measured rates of a GPU."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from tempfile import TemporaryDirectory

from adaexplore.core.problem import Problem
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.evaluate.offline.full_size import full_size
from adaexplore.evaluate.timing.roofline import PACKED_BYTES, Peaks, RooflineModel, Work


def counted_facts(problem: Problem, recorded: ReferenceFacts) -> ReferenceFacts:
    """Return what the shapes of a reference tell, with the rates of another reference's record.

    The reference runs in this process, on tensors without data. Unknown are the times of baselines,
    labels and errors; all is unknown of a reference that needs data.
    """
    precision, measured = problem.checks.precision, recorded.roofline
    with TemporaryDirectory() as folder, contextlib.chdir(folder):  # sources are written there
        full = full_size(replace(problem, device="cpu"))
    if full.why or measured is None:
        return ReferenceFacts(precision=precision)
    timed = full.timed[0]
    work = Work(timed.least_bytes + full.parameters * PACKED_BYTES[precision], timed.least_flops, 0)
    peaks = Peaks(measured.bytes_per_s, measured.flops_per_s, measured.overhead_us)
    return ReferenceFacts(
        precision=precision,
        parameters=full.parameters,
        layers=full.layers,
        outputs=timed.outputs,
        inputs=timed.forms,
        roofline=RooflineModel(work, peaks, precision).facts(),
    )
