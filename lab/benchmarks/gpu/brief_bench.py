"""`adaexplore bench` with a brief judge: every check, eager as the only baseline, rough times.

python lab/benchmarks/gpu/brief_bench.py --resume FOLDER --budget 5min --parallel 8
"""

from __future__ import annotations

import runpy
import sys
from functools import partialmethod

from adaexplore.evaluate import LocalEvaluator


def main() -> None:
    """Run `adaexplore bench` with the options of the command line."""
    brief = partialmethod(LocalEvaluator.__init__, brief=True)
    LocalEvaluator.__init__ = brief  # type: ignore[method-assign, assignment]
    sys.argv[1:1] = ["bench"]
    runpy.run_module("adaexplore", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
