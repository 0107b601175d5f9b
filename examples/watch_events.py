"""Follow a search step by step, and stop it at the first clear speedup."""

from contextlib import closing
from pathlib import Path
from typing import Any

import adaexplore
from adaexplore import Opened, Passed, Recorded


def main(**options: Any) -> adaexplore.Run:
    problem = Path(__file__).parent / "problems/softmax.py"
    path = Path()
    with closing(adaexplore.explore(problem, **{"steps": 8, **options})) as events:
        for event in events:
            if isinstance(event, Opened):
                path = event.path
            elif isinstance(event, Recorded):
                verdict = event.node.evaluation
                print(event.node.id, event.node.step_kind, verdict.status)
                measured = verdict.measured if isinstance(verdict, Passed) else None
                if measured and measured.speedup_ci[0] > 1.2:
                    break
    print(f"to continue: adaexplore.Run({str(path)!r}).resume()")
    return adaexplore.Run(path)


if __name__ == "__main__":
    main()
