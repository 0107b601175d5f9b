"""Twenty steps of KernelGYM's own reward client (`_HybridHttpWorker` on Ray) against a service.

    python kernelgym_client.py http://x:TOKEN@127.0.0.1:8710/kernelgym DRKERNEL

DRKERNEL is the folder `drkernel` of a clone of hkust-nlp/KernelGYM; the environment has ray, verl
and httpx. Prints a JSON object.
"""

import asyncio
import contextlib
import io
import json
import sys
import time
from types import SimpleNamespace

from steps import TRITON_REFERENCE, steps


class Penalties(dict):
    """Dr.Kernel's penalties, which its client reads both as attributes and as items."""

    __getattr__ = dict.__getitem__


def settings(url: str) -> SimpleNamespace:
    """Return the settings of `kernel_trainer.yaml`, with the stepped reward."""
    return SimpleNamespace(
        server_url=url,
        timeout=300,
        task_timeout_in_client=900,
        max_retries=20,
        rate_limit=4,
        max_concurrent=4,
        acquire_timeout=600,
        reward_func_name="calculate_reward_like_kernel",
        init_correct_weight=0.5,
        init_performance_weight=0.5,
        speedup_eps=0.01,
        speedup_reward_upper_bound=3.0,
        speedup_reward_lower_bound=0.0,
        reward_policy=SimpleNamespace(penalties=Penalties(penalty_score=0.0)),
        coverage_reward=SimpleNamespace(reward_type="time_coverage", enable=True, weight=0.5),
    )


def main() -> None:
    """Send the steps as one batch; print what the client made of them."""
    url, drkernel = sys.argv[1:]
    sys.path.insert(0, drkernel)
    import ray
    from kernel.rewards.reward_client import KernelRewardClient

    sent = steps(triton=True)  # its client asks for nothing else
    began = time.perf_counter()
    ray.init(log_to_driver=False)
    with contextlib.redirect_stdout(io.StringIO()):
        client = KernelRewardClient(reward_config=settings(url))
        tasks = [{"reference_code": TRITON_REFERENCE, "kernel_code": code} for code, _ in sent]
        found = asyncio.run(client.compute_batch_rewards(tasks))
    rows = [
        {
            "expected": status,
            "status": one["status"],
            "correctness": one.get("correctness"),
            "error_code": one.get("error_code"),
            "speedup": one.get("speedup"),
            "reward": one["reward"],
        }
        for (_, status), one in zip(sent, found, strict=True)
    ]
    right = [row["correctness"] == (row["expected"] == "passed") for row in rows]
    seconds = round(time.perf_counter() - began, 1)
    print(
        json.dumps({"client": "kernelgym", "as_expected": sum(right), "s": seconds, "rows": rows})
    )


if __name__ == "__main__":
    main()
