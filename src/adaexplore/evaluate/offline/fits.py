"""A job that checks without a GPU that a candidate's Triton kernels fit on a GPU."""

from __future__ import annotations

from typing import Any

from adaexplore.core.problem import Problem
from adaexplore.evaluate.kernels import driver
from adaexplore.evaluate.kernels.ahead import call_without_data, target_for
from adaexplore.evaluate.kernels.capture import Recorder
from adaexplore.evaluate.offline.full_size import full_size
from adaexplore.evaluate.wire.messages import Build


def job(request: dict[str, Any]) -> dict[str, Any]:
    """Compile the kernels that a call at full size launches, for a GPU of a compute capability.

    A job (see `sandbox.jobs`) from {"problem", "source", "capability"} to {"why"}. "why" names the
    resource that the GPU lacks, in one line; it is empty if all kernels fit or only a GPU can
    decide. The patches of the process stay.
    """
    from triton.compiler.errors import CompilationError
    from triton.runtime.errors import OutOfResources

    from adaexplore.evaluate.kernels.resources import compile_for

    problem = Problem.from_json(request["problem"])
    full = full_size(problem)
    if full.why:
        return {"why": ""}
    target = target_for(request["capability"])
    driver.install(target)
    recorder = Recorder(lambda _: None)
    recorder.install()
    build = Build(
        source=request["source"],
        capability=tuple(request["capability"]),
        seed=problem.seed,
        mode=problem.mode,
        access=problem.access,
        init=full.init,
        inputs=tuple(workload.inputs for workload in full.workloads),
        extensions=False,
        gradients=full.gradients,
    )
    try:
        call_without_data(build, target)
        for kernel in {launch.kernel.key: launch.kernel for launch in recorder.launches}.values():
            compile_for(kernel, target)
    except OutOfResources as error:
        return {"why": str(error)}
    except CompilationError as error:
        return {"why": f"{type(error).__name__}: {error}"}
    except Exception:  # noqa: BLE001 - the judge reports any other exception, with its reason
        return {"why": ""}
    return {"why": ""}
