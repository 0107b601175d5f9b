"""Has KernelGYM's own client complete steps against a running service.

    adaexplore serve token add gym; adaexplore serve &
    python lab/benchmarks/kernelgym_client.py CLIENT.py http://x:ada_...@127.0.0.1:8710/kernelgym

CLIENT.py is `drkernel/kernel/rewards/reward_client.py` of a clone of hkust-nlp/KernelGYM. It needs
ray and httpx; `verl`'s limiter of requests is replaced by one that lets all through. A third of the
steps are right, a third wrong, a third do not compile.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import sys
import types
from pathlib import Path
from typing import Any

import ray

REFERENCE = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


def get_inputs():
    return [torch.randn(64, 64)]
"""
RIGHT = REFERENCE.partition("def get_inputs")[0].replace("Model", "ModelNew")
KERNELS = {
    "right": RIGHT,
    "wrong": RIGHT.replace("+ 1", "+ 2"),
    "broken": RIGHT.replace("return", "retrun"),
}
CONFIG: dict[str, Any] = {
    **{"timeout": 300, "task_timeout_in_client": 600, "acquire_timeout": 60, "max_retries": 3},
    **{"rate_limit": 8, "max_concurrent": 4, "reward_func_name": "calculate_reward_like_kernel"},
    **{"init_correct_weight": 0.5, "init_performance_weight": 0.5, "speedup_eps": 0.01},
    **{"speedup_reward_upper_bound": 3.0, "speedup_reward_lower_bound": 0.0},
    "reward_policy": {"penalties": {"penalty_score": 0.0}},
    "coverage_reward": {"enable": False, "weight": 0.25, "reward_type": "time_coverage"},
}


class Penalties(dict[str, float]):
    """A dictionary whose keys are attributes, as the client reads some."""

    __getattr__ = dict.__getitem__


@ray.remote
class TokenBucketWorker:
    """A limiter of requests that lets all through."""

    def __init__(self, rate: int) -> None: ...

    def acquire(self) -> bool:
        """Let a request through."""
        return True

    def release(self) -> None:
        """Do nothing."""

    def get_current_count(self) -> int:
        """Return that none is under way."""
        return 0


def main() -> None:
    """Run the steps, and print what the client made of each kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("client", type=Path)
    parser.add_argument("url")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    ray.init(num_cpus=1, include_dashboard=False, object_store_memory=80 << 20)
    kinds = [[*KERNELS][step % len(KERNELS)] for step in range(asked.steps)]
    tasks = [
        {"reference_code": REFERENCE, "kernel_code": KERNELS[kind], "task_id": f"step-{step}"}
        for step, kind in enumerate(kinds)
    ]
    client = _client(asked.client, asked.url)
    results = asyncio.run(client.compute_batch_rewards(tasks))
    kept = ("status", "compiled", "correctness", "reward", "speedup", "error_message")
    rows = [
        {"kind": kind} | {name: result.get(name) for name in kept}
        for kind, result in zip(kinds, results, strict=True)
    ]
    for row in rows:
        print(row)
    if asked.out:
        asked.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _client(path: Path, url: str) -> Any:
    limiter: Any = types.ModuleType("verl.tools.sandbox_fusion_tools")
    limiter.TokenBucketWorker = TokenBucketWorker
    for name in ("verl", "verl.tools"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules[limiter.__name__] = limiter
    spec = importlib.util.spec_from_file_location("reward_client", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["reward_client"] = module
    spec.loader.exec_module(module)
    config = {**CONFIG, "server_url": url}
    config["reward_policy"] = types.SimpleNamespace(
        penalties=Penalties(config["reward_policy"]["penalties"])
    )
    config["coverage_reward"] = types.SimpleNamespace(**config["coverage_reward"])
    return module.KernelRewardClient(reward_config=types.SimpleNamespace(**config))


if __name__ == "__main__":
    main()
