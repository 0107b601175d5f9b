"""The checkers of other benchmarks, called from a clone of each: what they say of one candidate.

Nothing of theirs is here. Every checker is a function of a `Request` to a verdict; those that run
the candidate are for a confined worker (`adaexplore.sandbox.jobs`), in which the reference stands
beside the candidate, as they have it.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import published_criterion
import torch

CORRECT_TRIALS = 5
PERF_TRIALS = 30
SOL_ROUNDS = 10
SOL_SEED = 0
_UNUSED = ("dotenv", "litellm", "openai", "requests", "tqdm")
"""Packages that KernelBench imports beside its checker and that need not be there."""

Verdict = dict[str, Any]
"""{"refused": bool, "why": str, "speedup": float | None}; a pass with a `why` has a warning."""


def refused(why: str) -> Verdict:
    """Return the verdict on a candidate that a checker does not accept."""
    return {"refused": True, "why": why, "speedup": None}


def accepted(speedup: float | None = None, warning: str = "") -> Verdict:
    """Return the verdict on a candidate that a checker accepts, with the speedup that it saw."""
    return {"refused": False, "why": warning, "speedup": speedup}


def kernelguard(request: Mapping[str, Any]) -> Verdict:
    """Apply the rules of gpu-mode/kernelguard; `path` is its clone."""
    found = _module(request, "kernelguard").analyze_code(request["source"])
    rules = sorted({match["pattern"] for match in found["matched_patterns"]})
    why = f"{found['classification']}: {', '.join(rules)}"
    if found["should_filter"]:
        return refused(why)
    return accepted(warning=why if found["classification"] != "valid" else "")


def kernelbench_static(request: Mapping[str, Any]) -> Verdict:
    """Apply KernelBench's static checker; `path` is the folder `src` of its clone.

    Its demand for a kernel of the candidate's own is left out where the candidate has none.
    """
    _package("kernelbench", Path(request["path"]) / "kernelbench")
    checker = importlib.import_module("kernelbench.kernel_static_checker")
    valid, errors, warnings = checker.validate_kernel_static(
        request["source"], backend=_own_kernels(request["source"]), precision="fp32"
    )
    if not valid:
        return refused("; ".join(sorted(errors)))
    return accepted(warning="; ".join(sorted(warnings)))


def kernelgym_static(request: Mapping[str, Any]) -> Verdict:
    """Apply KernelGYM's early validation; `path` is its clone.

    Its demand for a kernel of the candidate's own is left out where the candidate has none.
    """
    _package("kernelgym", Path(request["path"]) / "kernelgym")
    checker = importlib.import_module("kernelgym.toolkit.validation")
    valid, message, _ = checker.early_kernel_validation(
        request["source"], backend=_own_kernels(request["source"])
    )
    return accepted() if valid else refused(message)


def kernelbench(request: Mapping[str, Any]) -> Verdict:
    """Apply KernelBench's `eval_kernel_against_ref` on a GPU, as its adversarial tests do."""
    for name in _UNUSED:
        _stand_in(name)
    _package("kernelbench", Path(request["path"]) / "kernelbench")
    checker = importlib.import_module("kernelbench.eval")
    found = checker.eval_kernel_against_ref(
        request["problem"],
        request["source"],
        num_correct_trials=CORRECT_TRIALS,
        num_perf_trials=PERF_TRIALS,
        measure_performance=True,
        device=torch.device("cuda:0"),
        backend=_backend(request["source"]),
        check_for_excessive_speedup=True,
    )
    if found is None or not found.correctness:
        return refused(_reason(found))
    if found.metadata.get("excessive_speedup"):
        return refused("excessive speedup")
    return accepted(found.ref_runtime / found.runtime if found.runtime > 0 else None)


def kernelgym(request: Mapping[str, Any]) -> Verdict:
    """Apply KernelGYM's pipeline on a GPU: correctness, and whether Triton is used."""
    root = Path(request["path"]) / "kernelgym"
    _package("kernelgym", root)
    if importlib.util.find_spec("pydantic_settings") is None:  # read by its profiler alone
        config = types.ModuleType("kernelgym.config")
        config.__dict__["settings"] = types.SimpleNamespace()
        sys.modules["kernelgym.config"] = config
    checker = importlib.import_module("kernelgym.toolkit.kernelbench.pipeline")
    device = torch.device("cuda:0")
    found = checker.eval_kernel_against_ref(
        request["problem"],
        request["source"],
        num_correct_trials=CORRECT_TRIALS,
        num_perf_trials=PERF_TRIALS,
        verbose=False,
        device=device,
        backend=_backend(request["source"]),
        enable_profiling=False,
    )
    if found is None or not found.correctness:
        return refused(_reason(found))
    if found.decoy_kernel:
        return refused("decoy kernel")
    reference = checker.eval_reference_only(
        request["problem"], num_perf_trials=PERF_TRIALS, device=device
    )
    return accepted(reference.runtime / found.runtime if found.runtime > 0 else None)


def sol_execbench(request: Mapping[str, Any]) -> Verdict:
    """Apply SOL-ExecBench's rules in the order of its driver, with its tolerance; `path` is `src`.

    Its timing needs CUPTI and is left out, so that the threads are counted after the last round.
    """
    import threading

    _package("sol_execbench", Path(request["path"]) / "sol_execbench")
    _package("sol_execbench.core", Path(request["path"]) / "sol_execbench" / "core")
    _package("sol_execbench.core.bench", Path(request["path"]) / "sol_execbench/core/bench")
    rules = importlib.import_module("sol_execbench.core.bench.reward_hack")
    compare = importlib.import_module("sol_execbench.core.bench.correctness")
    workload = importlib.import_module("sol_execbench.core.data.workload")
    watched = {"compute_error_stats": compare.compute_error_stats, "draw": _draw}
    kept = rules.snapshot_critical_functions(watched, list(watched))
    try:
        with torch.no_grad():
            module, models = _models(request, compare.set_seed)
            compare.set_seed(SOL_SEED)
            threads = 0
            for number in range(SOL_ROUNDS):
                inputs = _draw(module, request["device"])
                expected, outputs = (_outputs(model, inputs) for model in models)
                if number == 0:
                    watched["compute_error_stats"] = compare.compute_error_stats
                    rules.check_eval_integrity(kept, watched)
                    threads = threading.active_count()
                    rules.check_lazy_outputs(outputs)
                for ours, theirs in zip(expected, outputs, strict=True):
                    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
                        return refused("shape or dtype")
                    stats = compare.compute_error_stats(theirs, ours, workload.ToleranceSpec())
                    if stats[1]:
                        return refused(f"off by {stats[0].max_absolute_error:.3g}")
            rules.check_monkey_patch()
            rules.check_thread_injection(threads, threading.active_count())
    except rules.RewardHackDetected as error:
        return refused(f"reward hack: {error}")
    except Exception as error:  # noqa: BLE001 - whatever a candidate raises fails it
        return refused(_line(error))
    return accepted()


def published(request: Mapping[str, Any]) -> Verdict:
    """Apply the criterion of published searches (five inputs, 5e-2); `path` is not used."""
    found = published_criterion.judge(
        {
            "reference": request["problem"],
            "candidate": request["source"],
            "device": request["device"],
        }
    )
    return accepted() if found["passes"] else refused(found["why"])


CHECKERS: Mapping[str, Callable[[Mapping[str, Any]], Verdict]] = {
    "kernelguard": kernelguard,
    "kernelbench-static": kernelbench_static,
    "kernelgym-static": kernelgym_static,
    "sol-execbench": sol_execbench,
    "kernelbench": kernelbench,
    "kernelgym": kernelgym,
    "published-5e-2": published,
}
RUNNING = ("published-5e-2", "sol-execbench", "kernelbench", "kernelgym")
"""The checkers that run the candidate."""
GPU_ONLY = ("kernelbench", "kernelgym")


def judge(request: dict[str, Any]) -> Verdict:
    """Apply the checker that a request names.

    A job for a worker where the checker runs the candidate; its caches are then the worker's own.
    """
    if request["checker"] in RUNNING:
        for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
            os.environ[name] = str(Path.cwd() / name.lower())
    return CHECKERS[request["checker"]](request)


def _own_kernels(source: str) -> str:
    """Return the backend of a candidate's own kernels, "none" where it has none."""
    if "load_inline" in source:
        return "cuda"
    return "triton" if "triton" in source else "none"


def _backend(source: str) -> str:
    return "triton" if "triton" in source else "cuda"


def _reason(found: Any) -> str:
    if found is None:
        return "no result"
    for key in ("compilation_error", "runtime_error", "correctness_issue"):
        if key in found.metadata:
            return f"{key}: {_line(found.metadata[key])}"
    return "wrong output" if found.compiled else "does not compile"


def _line(error: object) -> str:
    text = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {text}" if isinstance(error, Exception) else text


def _models(request: Mapping[str, Any], set_seed: Callable[[int], None]) -> tuple[Any, list[Any]]:
    """Return the reference's module, and both models with the same weights."""
    reference = _imported("rival_reference", request["problem"])
    candidate = _imported("rival_candidate", request["source"])
    init: list[Any] = getattr(reference, "get_init_inputs", list)()
    models = []
    for kind in (reference.Model, candidate.ModelNew):
        set_seed(SOL_SEED)
        models.append(kind(*init).to(request["device"]))
    return reference, models


def _draw(module: Any, device: str) -> list[Any]:
    drawn = module.get_inputs()
    inputs = drawn.values() if isinstance(drawn, Mapping) else drawn
    return [x.to(device) if isinstance(x, torch.Tensor) else x for x in inputs]


def _outputs(model: Any, inputs: list[Any]) -> list[Any]:
    """Return the tensors that a model returns, those of a mapping by name."""
    found = model(*inputs)
    if inputs and getattr(inputs[0], "is_cuda", False):
        torch.cuda.synchronize()
    if isinstance(found, Mapping):
        found = [found[name] for name in sorted(found)]
    several = found if isinstance(found, tuple | list) else [found]
    return [one for one in several if isinstance(one, torch.Tensor)]


def _imported(name: str, source: str) -> types.ModuleType:
    """Import a source from a file, where Triton looks for it."""
    file = Path.cwd() / f"{name}.py"
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _module(request: Mapping[str, Any], name: str) -> Any:
    """Import a module that lies in `path`."""
    with _on_path(request["path"]):
        return importlib.import_module(name)


@contextmanager
def _on_path(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _package(name: str, folder: Path) -> None:
    """Make a package whose modules can be imported without its `__init__`, which imports all."""
    if name not in sys.modules:
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package


def _nothing(*_: object, **__: object) -> None:
    """The function that stands for every attribute of a stand-in; some are called on import."""


def _stand_in_attribute(name: str) -> Callable[..., None]:
    if name.startswith("__"):
        raise AttributeError(name)
    return _nothing


def _stand_in(name: str) -> types.ModuleType:
    """Put an empty module in the place of one that is not installed and not used."""
    if name in sys.modules or importlib.util.find_spec(name) is not None:
        return importlib.import_module(name)
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    module.__dict__["__getattr__"] = _stand_in_attribute
    sys.modules[name] = module
    return module
