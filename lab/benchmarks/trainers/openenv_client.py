"""Twenty steps of OpenEnv's own client (`GenericEnvClient`) against a service.

    python openenv_client.py http://x:TOKEN@127.0.0.1:8710/openenv INDEX

INDEX is the place of `steps.REFERENCE` in the split `train`; the environment has openenv. Prints a
JSON object.
"""

import importlib.metadata
import json
import sys
import time

from openenv import GenericEnvClient
from steps import REFERENCE, steps

TURNS = 5


def main() -> None:
    """Play episodes of five turns each; print what the client received."""
    url, index = sys.argv[1], int(sys.argv[2])
    began, rows = time.perf_counter(), []
    with GenericEnvClient(base_url=url, message_timeout_s=300).sync() as env:
        order = {"split": "train", "index": index, "reward": "kernrl", "max_turns": TURNS}
        for place, (code, expected) in enumerate(steps()):
            if place % TURNS == 0:
                result = env.reset(**order, wait_s=280)
                assert REFERENCE.strip() in result.observation["prompt"]
            result = env.step({"code": code})
            seen = result.observation
            assert result.done == (seen["turn"] == TURNS)
            rows.append(
                {
                    "expected": expected,
                    "status": seen["status"],
                    "reward": result.reward,
                    "speedup": seen["speedup"],
                    "turn": seen["turn"],
                }
            )
        state = env.state()
    print(
        json.dumps(
            {
                "client": f"openenv {importlib.metadata.version('openenv')}",
                "as_expected": sum(row["status"] == row["expected"] for row in rows),
                "s": round(time.perf_counter() - began, 1),
                "state": state,
                "rows": rows,
            }
        )
    )


if __name__ == "__main__":
    main()
