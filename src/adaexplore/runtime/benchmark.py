"""The benchmark of the kernel: `python -m PACKAGE.benchmark` prints a table of times."""

from __future__ import annotations

from adaexplore.runtime.loaded import SPEC
from adaexplore.runtime.timing import times_of


def main() -> None:
    """Print the times of the kernel, of the original, and of the original under `torch.compile`."""
    print(
        f"{'workload':24} {'kernel us':>10} {'eager us':>10} {'compile us':>10} {'verdict us':>10}"
    )
    for workload in SPEC.workloads:
        times = times_of(workload)
        print(
            f"{workload.name:24} {times.kernel_us:10.1f} {times.eager_us:10.1f} "
            f"{times.compile_us:10.1f} {workload.time_us:10.1f}"
        )


if __name__ == "__main__":
    main()
