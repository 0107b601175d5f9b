"""MultiKernelBench form: as KernelBench, with several groups of inputs from `get_input_groups`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Problem, Workload
from adaexplore.core.protocols.loader import LoadOptions
from adaexplore.problems import kernelbench
from adaexplore.problems.access import settled

_GROUPS = "get_input_groups"


class MultiKernelBench:
    """A Python file with `Model` and `get_input_groups`, each of whose groups is a workload."""

    name = "MultiKernelBench"

    def can_load(self, path: Path) -> bool:
        """Return whether the file defines `get_input_groups` and no `get_inputs`."""
        try:
            names = kernelbench.names_of(path)
            declared = kernelbench.declarations_of(path)
        except BadProblemError:
            return False
        return _GROUPS in names and "get_inputs" not in names and not declared.workloads

    def load(self, path: Path, options: LoadOptions) -> Problem:
        """Return the problem, with a workload for each group, named after its shapes."""
        problem = kernelbench.parsed(path, options, inputs=_GROUPS)
        groups = replace(problem, workloads=(Workload(draw=f"{_GROUPS}()"),))
        return settled(groups, path, options.allow)
