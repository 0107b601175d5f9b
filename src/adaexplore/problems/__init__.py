"""Problems: their loaders, the benchmarks of the field, and what goes back to these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaexplore.core.lazy import lazy_names

if TYPE_CHECKING:
    from adaexplore.problems.benchmarks import benchmark_named as benchmark_named
    from adaexplore.problems.flashinfer.dataset import DatasetEntry as DatasetEntry
    from adaexplore.problems.flashinfer.dataset import dataset_entries as dataset_entries
    from adaexplore.problems.flashinfer.loader import load_entry as load_entry
    from adaexplore.problems.flashinfer.schema import Definition as Definition
    from adaexplore.problems.load import EXAMPLE as EXAMPLE
    from adaexplore.problems.load import LOADERS as LOADERS
    from adaexplore.problems.load import load_problem as load_problem
    from adaexplore.problems.overlap.confined import STRUCTURE_PRELOAD as STRUCTURE_PRELOAD
    from adaexplore.problems.overlap.confined import run_confined as run_confined
    from adaexplore.problems.overlap.confined import structure_of as structure_of
    from adaexplore.problems.overlap.structures import STRUCTURES_FILE as STRUCTURES_FILE
    from adaexplore.problems.overlap.structures import benchmark_structures as benchmark_structures
    from adaexplore.problems.overlap.structures import structures_in as structures_in
    from adaexplore.problems.overlap.structures import structures_text as structures_text
    from adaexplore.problems.solutions.delivery import Delivery as Delivery
    from adaexplore.problems.solutions.flashinfer import (
        deliver_to_flashinfer as deliver_to_flashinfer,
    )
    from adaexplore.problems.solutions.specification import Specification as Specification
    from adaexplore.problems.solutions.specification import (
        read_specification as read_specification,
    )
else:
    __all__, __getattr__ = lazy_names(__name__, __file__)
