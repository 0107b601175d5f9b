"""Optimize a problem's file and print the claimed speedup."""

from pathlib import Path
from typing import Any

import adaexplore


def main(**options: Any) -> adaexplore.Run:
    problem = Path(__file__).parent / "problems/softmax.py"
    run = adaexplore.optimize(problem, **{"steps": 8, **options})
    print(run)
    print(f"report: {run.report_path}")
    return run


if __name__ == "__main__":
    main()
