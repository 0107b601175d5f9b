"""Twenty steps of verifiers' taskset for OpenEnv (`verifiers.v1.tasksets.openenv`) with a script.

    python verifiers_client.py http://x:TOKEN@127.0.0.1:8710/openenv INDEX

The taskset and its environment are verifiers' own; the model is a script that replies with the
kernels of `steps`. INDEX is the place of `steps.REFERENCE` in the split `train`; the environment
has verifiers and openenv. Prints a JSON object.
"""

import asyncio
import contextlib
import importlib.metadata
import json
import sys
import time
from types import SimpleNamespace

from steps import REFERENCE, steps
from verifiers.v1.tasksets.openenv import (
    OpenEnvConfig,
    OpenEnvEnv,
    OpenEnvEnvConfig,
    OpenEnvTaskset,
)

TURNS = 5


class Trace:
    """What the environment records of a rollout."""

    def __init__(self):
        self.rewards = {}

    def record_reward(self, name, value):
        self.rewards[name] = value


class Player:
    """An agent whose model replies with one kernel after another."""

    def __init__(self, codes):
        self._codes = iter(codes)
        self.seen = []
        self.traces = []

    @contextlib.asynccontextmanager
    async def interaction(self, _task):
        self.traces.append(Trace())

        async def turn(payload):
            self.seen.append(json.loads(payload))
            return SimpleNamespace(terminated=False, last_reply=f"```python\n{next(self._codes)}```")

        yield SimpleNamespace(turn=turn, trace=self.traces[-1])


async def play(url, index):
    """Run the taskset's tasks one after another; return the scripted player."""
    sent = steps()
    order = {"split": "train", "index": index, "reward": "tritonforge", "max_turns": TURNS}
    config = OpenEnvConfig(base_url=url, resets=[order] * (len(sent) // TURNS))
    player = Player(code for code, _ in sent)
    environment = OpenEnvEnv.__new__(OpenEnvEnv)
    environment.config = OpenEnvEnvConfig()
    for task in OpenEnvTaskset(config).load():
        await environment.run(task, SimpleNamespace(player=player))
    return player


def main():
    """Play; print the rewards that verifiers recorded, and the verdicts between the turns."""
    url, index = sys.argv[1], int(sys.argv[2])
    began = time.perf_counter()
    player = asyncio.run(play(url, index))
    assert all(REFERENCE.strip() in seen["observation"]["prompt"] for seen in player.seen[::TURNS])
    shown = [s["observation"]["status"] for i, s in enumerate(player.seen) if i % TURNS]
    expected = [status for i, (_, status) in enumerate(steps()) if (i + 1) % TURNS]
    print(
        json.dumps(
            {
                "client": f"verifiers {importlib.metadata.version('verifiers')}",
                "steps": len(player.seen),
                "shown_verdicts": len(shown),
                "as_expected": sum(map(str.__eq__, shown, expected)),
                "episode_rewards": [trace.rewards for trace in player.traces],
                "s": round(time.perf_counter() - began, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
