"""Whether a GPU has room for a candidate's Triton kernels, found out without the GPU."""

from __future__ import annotations

from typing import Any

from adaexplore.evaluate.kernels import driver
from adaexplore.evaluate.kernels.ahead import call_without_data, target_for
from adaexplore.evaluate.kernels.capture import Recorder
from adaexplore.evaluate.offline import full_size


def job(request: dict[str, Any]) -> dict[str, Any]:
    """Compiles what a call at full size launches, for a GPU of a compute capability.

    A job (see `sandbox.jobs`) from {"problem", "source", "capability"} to {"why"}: what there is no
    room for, in one line, and empty where all fits or nobody can tell without the GPU. Patches its
    process for good.
    """
    from triton.compiler.errors import CompilationError
    from triton.runtime.errors import OutOfResources

    from adaexplore.evaluate.kernels.resources import compile_for

    arguments = full_size.job(request)
    if arguments["why"]:
        return {"why": ""}
    problem, target = request["problem"], target_for(request["capability"])
    driver.install(target)
    recorder = Recorder(lambda _: None)
    recorder.install()
    asked = {"source": request["source"], "seed": problem["seed"], "mode": problem["mode"]}
    asked["access"] = problem["access"]
    try:
        call_without_data(asked | arguments, target)
        for kernel in {launch.kernel.key: launch.kernel for launch in recorder.launches}.values():
            compile_for(kernel, target)
    except OutOfResources as error:
        return {"why": str(error)}
    except CompilationError as error:
        return {"why": f"{type(error).__name__}: {error}"}
    except Exception:  # noqa: BLE001 - whatever else it raises, the judge says it with its reason
        return {"why": ""}
    return {"why": ""}
