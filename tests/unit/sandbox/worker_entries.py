"""Entry functions of the tests' workers, imported by the fork server."""

import gc
import importlib
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from adaexplore.sandbox.process import ForkServer

SLEEPER = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]


def compile_nothing():
    """Preloaded function: make `torch.compile` return the module unchanged."""
    import torch

    torch.compiler.set_stance("force_eager")


def time_briefly():
    """Preloaded function: make judges time on the CPU with short blocks, and as if in brief.

    Tests of the whole effort call `measure` themselves.
    """
    measuring = importlib.import_module("adaexplore.evaluate.judge.measure")
    effort_for = measuring.effort_for

    def effort(device, *, brief):
        if device != "cpu":
            return effort_for(device, brief=brief)
        return replace(effort_for(device, brief=True), block_us=1500.0, other_us=1500.0)

    measuring.effort_for = effort


def remember_peaks():
    """Preloaded function: make judges measure what the CPU can do once for all of them."""
    workload = importlib.import_module("adaexplore.evaluate.judge.workload")
    measure_peaks, folder = workload.measure_peaks, Path(os.environ["HOME"])

    def peaks(device, clock, work_bytes, precision):
        known = folder / f"peaks-{precision}"
        if device != "cpu":
            return measure_peaks(device, clock, work_bytes, precision)
        if not known.exists():
            found = measure_peaks(device, clock, work_bytes, precision)
            part = known.with_suffix(f".{os.getpid()}")
            part.write_bytes(pickle.dumps(found))
            part.replace(known)
        return pickle.loads(known.read_bytes())

    workload.measure_peaks = peaks


def rest_briefly():
    """Preloaded function: let candidates that rest on the CPU collect what is young alone.

    To look through all that the fork server has loaded takes a quarter of an evaluation.
    """
    import torch

    worker = importlib.import_module("adaexplore.evaluate.candidate.worker")
    worker.gc = SimpleNamespace(collect=lambda: gc.collect(2 if torch.cuda.is_initialized() else 1))


def leave_a_kernel():
    """Preloaded function: fake a compilation by Triton."""
    cache = Path(os.environ["TRITON_CACHE_DIR"])
    cache.mkdir()
    (cache / "kernel").write_text("compiled")


def hold_memory():
    """Preloaded function: leave memory that every worker inherits."""
    global held
    held = b"x" * (500 << 20)


def name_a_folder():
    """Preloaded function: return a folder that workers may not read by default."""
    return Path("/var/lib")


def never_done():
    """Preloaded function: fake an endless import."""
    time.sleep(600)


def echo(channel, control):
    while True:
        channel.send(channel.receive())


def act(channel, control):
    """Perform the requested action on this process, then answer its outcome."""
    while True:
        request, fds = channel.receive_with_fds()
        request["fds"] = fds
        try:
            reply = ACTIONS[request["do"]](request, channel)
        except (OSError, MemoryError) as error:
            reply = {"raised": type(error).__name__, "errno": getattr(error, "errno", None)}
        channel.send(reply or {})


def _see_environment(request, channel):
    return {"os": dict(os.environ), "kernel": Path("/proc/self/environ").read_text()}


def _see_surroundings(request, channel):
    return {
        "pid": os.getpid(),
        "group": os.getpgid(0),
        "session": os.getsid(0),
        "folder": str(Path.cwd()),
        "descriptors": [int(entry.name) for entry in Path("/proc/self/fd").iterdir()],
        "interrupts": str(signal.getsignal(signal.SIGINT)),
        "torch": "torch" in sys.modules,
        "open_files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    }


def _hang_with_family(request, channel):
    """Leave two sleeping processes, one of them in its own session, and never answer."""
    child = subprocess.Popen(SLEEPER)
    stranger = subprocess.Popen(SLEEPER, start_new_session=True)
    Path(request["pids"]).write_text(f"{os.getpid()} {child.pid} {stranger.pid}")
    time.sleep(600)


def _spam(request, channel):
    block = b"x" * (1 << 20)
    for _ in range(request["megabytes"]):
        os.write(1, block)


def _grow(request, channel):
    return {"grown": len(bytearray(request["bytes"]))}


def _python(request, channel):
    """Run code, which may leave its answer in `result`."""
    names = {"given": request.get("given"), "fds": request["fds"]}
    exec(request["code"], names)
    return {"result": names.get("result")}


def _exit(request, channel):
    os._exit(request["code"])


def _kill(request, channel):
    os.kill(os.getpid(), request["signal"])
    time.sleep(600)


def _raise(request, channel):
    raise LookupError("nothing there")


def _garble(request, channel):
    os.write(channel.fileno(), b"\xff" * 64)
    time.sleep(600)


def _close(request, channel):
    os.close(channel.fileno())
    time.sleep(600)


def _stop_reading(request, channel):
    channel.send({})
    time.sleep(600)


ACTIONS = {
    "environment": _see_environment,
    "surroundings": _see_surroundings,
    "hang_with_family": _hang_with_family,
    "spam": _spam,
    "grow": _grow,
    "python": _python,
    "exit": _exit,
    "kill": _kill,
    "raise": _raise,
    "garble": _garble,
    "close": _close,
    "stop_reading": _stop_reading,
}


def foreman(channel, control):
    """Worker that spawns another worker and answers its pid."""
    server = ForkServer(control, Path.cwd())
    while True:
        channel.receive()
        worker = server.spawn("worker_entries:act", name="inner")
        reply = worker.call({"do": "surroundings"}, 30.0)
        channel.send(reply)


def grow_large(request):
    """Job that exceeds its memory limit."""
    return {"grown": len(bytearray(1 << 32))}


def double(request):
    """Simple job."""
    return {"doubled": 2 * request["number"]}


def fail(request):
    """Job that raises."""
    raise LookupError("no such thing")


def sleep(request):
    """Job that exceeds its time limit."""
    time.sleep(600)


def join_judges(channel, control):
    """Join the judges of a device, and say at each message whether there are others."""
    from adaexplore.sandbox.lock import has_other_judges, join_judges

    device = channel.receive()["device"]
    join_judges(device)
    while True:
        channel.send({"others": has_other_judges(device)})
        channel.receive()


def hold_lock(channel, control):
    """Take the requested lock, report it, and release it at the next message."""
    from adaexplore.sandbox.lock import device_lent, device_lock

    request = channel.receive()
    with device_lock(request["device"], exclusive=request["exclusive"]):
        channel.send({"held": True})
        if channel.receive().get("lend"):
            with device_lent(request["device"]):
                channel.send({"held": False})
                channel.receive()
            channel.send({"held": True})
            channel.receive()
    channel.send({"held": False})
    channel.receive()


def open_tensors(channel, control):
    """Open shared tensors and report their content, or fill them."""
    from adaexplore.core import codec
    from adaexplore.evaluate.wire.messages import TensorHandle
    from adaexplore.evaluate.wire.tensors import fingerprint, open_shared

    request, fds = channel.receive_with_fds()
    tensors = open_shared([codec.read(TensorHandle, h) for h in request["handles"]], fds)
    if request["do"] == "fill":
        for tensor in tensors:
            tensor.fill_(request["value"])
    channel.send(
        {
            "tensors": [
                {
                    "dtype": str(t.dtype),
                    "shape": list(t.shape),
                    "strides": list(t.stride()),
                    "sum": str(t.sum().item()),
                    "fingerprint": fingerprint(t),
                }
                for t in tensors
            ]
        }
    )
    channel.receive()


def change_under_watch(request):
    """Job that runs a change and returns the report of `integrity.ProcessState` about it."""
    import torch

    from adaexplore.evaluate.candidate.integrity import ProcessState

    watch = ProcessState()
    exec(request["change"], {"torch": torch})
    replaced, flags = watch.replaced(), watch.changed_flags()
    watch.restore_flags()
    return {"replaced": replaced, "flags": flags, "restored": watch.changed_flags()}


def compile_for(request):
    """Compile and time a kernel for some seconds under a limit; a job."""
    import torch._inductor.compile_fx as inductor
    from torch._inductor.runtime import benchmarking

    from adaexplore.evaluate.timing.baselines.compiling import CompileLimit, compiling_lent

    benchmarker = benchmarking.benchmarker

    def compile_graph():
        time.sleep(request["takes_s"])
        benchmarker.benchmark_gpu()
        time.sleep(request["takes_s"])

    inductor.compile_fx = compile_graph
    type(benchmarker).benchmark_gpu = lambda _: time.sleep(request.get("times_s", 0.0))
    with compiling_lent("cpu", CompileLimit(request["limit_s"])):
        inductor.compile_fx()
        time.sleep(request.get("runs_s", 0.0))
    return {"done": True}


def fail_to_capture(request):
    """Capture what waits for the GPU, then draw numbers; a job."""
    import torch

    from adaexplore.evaluate.timing.baselines.offered import Subject, captured
    from adaexplore.sandbox.user.values import Inputs

    class Waiting(torch.nn.Module):
        def forward(self, x):
            return x + torch.rand_like(x) if x.sum().item() < 1e30 else x

    device = request["device"]
    x, before = torch.ones(64, device=device), torch.cuda.current_stream(device)
    why = ""
    try:
        captured(Subject(Waiting(), Inputs([x]), device))
    except RuntimeError as error:
        why = str(error)
    drawn = torch.rand(64, device=device)
    same_stream = torch.cuda.current_stream(device) == before
    return {"why": why, "is_random": bool(drawn.std() > 0), "same_stream": same_stream}


def asserts_on_other_inputs(channel, control):
    """A judge whose reference takes it down, unless it runs on inputs of its own kind only."""
    from adaexplore.core import codec
    from adaexplore.core.verdict.facts import ReferenceFacts
    from adaexplore.evaluate.wire.judge_messages import ReferencePrepared

    if own_only := channel.receive()["own_only"]:
        facts = ReferenceFacts(notes=(f"{own_only=}",))
        channel.send(codec.write(ReferencePrepared(facts.to_json())))
    else:
        _assert(channel)
    channel.receive()


def asserts(channel, control):
    """A judge whose reference takes it down."""
    channel.receive()
    _assert(channel)
    channel.receive()


def _assert(channel):
    from adaexplore.core import codec
    from adaexplore.evaluate.wire.judge_messages import Broken

    channel.send(codec.write(Broken("CUDA error: device-side assert triggered", "")))
