"""The scripts in `lab/benchmarks` import each other by name, as they do when they are run."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path += [str(BENCHMARKS), str(BENCHMARKS / "gpu"), str(BENCHMARKS / "gluon")]
