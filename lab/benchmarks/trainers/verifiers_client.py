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
        """Record a reward, as verifiers' trace does."""
        self.rewards[name] = value


class Player:
    """An agent whose model replies with one kernel after another."""

    def __init__(self, codes):
        self._codes = codes
        self.seen = []
        self.trace = Trace()

    @contextlib.asynccontextmanager
    async def interaction(self, _task):
        """Begin a rollout, as verifiers' agents do."""

        async def turn(payload):
            reply = f"```python\n{self._codes[len(self.seen)]}```"
            self.seen.append(json.loads(payload))
            return SimpleNamespace(terminated=False, last_reply=reply)

        yield SimpleNamespace(turn=turn, trace=self.trace)


async def play(url, index):
    """Run the taskset's tasks, two at a time; return the players, and the rollouts run again.

    A rollout that an error ended is run again, as verifiers' `retries` do.
    """
    sent = [code for code, _ in steps()]
    order = {"split": "train", "index": index, "reward": "tritonforge", "max_turns": TURNS}
    config = OpenEnvConfig(base_url=url, resets=[order] * (len(sent) // TURNS))
    environment = OpenEnvEnv.__new__(OpenEnvEnv)
    environment.config = OpenEnvEnvConfig()
    places, again = asyncio.Semaphore(2), []

    async def rollout(place, task):
        async with places:
            while True:
                player = Player(sent[place * TURNS : (place + 1) * TURNS])
                try:
                    await environment.run(task, SimpleNamespace(player=player))
                except RuntimeError as error:
                    if "send the step again" not in str(error):
                        raise
                    again.append(place)
                else:
                    return player

    tasks = enumerate(OpenEnvTaskset(config).load())
    players = await asyncio.gather(*(rollout(place, task) for place, task in tasks))
    return players, len(again)


def main():
    """Play; print the rewards that verifiers recorded, and the verdicts between the turns."""
    url, index = sys.argv[1], int(sys.argv[2])
    began = time.perf_counter()
    players, again = asyncio.run(play(url, index))
    assert all(REFERENCE.strip() in p.seen[0]["observation"]["prompt"] for p in players)
    shown = [seen["observation"]["status"] for p in players for seen in p.seen[1:]]
    expected = [status for i, (_, status) in enumerate(steps()) if (i + 1) % TURNS]
    print(
        json.dumps(
            {
                "client": f"verifiers {importlib.metadata.version('verifiers')}",
                "steps": sum(len(player.seen) for player in players),
                "rollouts_run_again": again,
                "shown_verdicts": len(shown),
                "as_expected": sum(map(str.__eq__, shown, expected)),
                "episode_rewards": [player.trace.rewards for player in players],
                "s": round(time.perf_counter() - began, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
