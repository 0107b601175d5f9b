"""Candidates that crash, hang, take everything or attack: the evaluator goes on.

Each gets a verdict that names what happened, and the next candidate, a good one, gets the right
verdict from the same evaluator. What they take is bounded, so that a broken sandbox fails the test
and not the machine.
"""

import textwrap
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.sandbox.lock import lock_file
from fast_set import of_which_fast

ENOUGH_S = 120.0
SHORT_S = {"cpu": 6.0, "cuda:0": 20.0}  # a process that begins to use a GPU takes seconds
MEMORY_BYTES = 2 << 30
SECRET = "the words that no candidate may read"

PROBLEM = f"""
import torch
from torch import nn

# {SECRET}

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2

def get_inputs():
    return [torch.randn(64, 128)]
"""

HEADER = """
import ctypes, itertools, mmap, os, signal, socket, sys, threading, time
from pathlib import Path
import torch
from torch import nn
"""
RIGHT = """
    for _ in range(8):
        out = torch.relu(x) * 2
    return out
"""


def candidate(body: str, before: str = "") -> Candidate:
    forward = textwrap.indent(textwrap.dedent(body), " " * 8)
    head = HEADER + textwrap.dedent(before)
    source = f"{head}\nclass ModelNew(nn.Module):\n    def forward(self, x):\n{forward}\n"
    return Candidate(source, "cpp")


@dataclass(frozen=True)
class Fault:
    """What a candidate does, the verdict it gets, and words of that verdict's reason."""

    body: str
    statuses: tuple[str, ...]
    words: str = ""
    before: str = ""


RAISED = ("runtime_error",)
DENIED = "PermissionError"

CRASHES = {
    "leaving": Fault("os._exit(0)", RAISED, "exited with code 0"),
    "segmentation fault": Fault("ctypes.string_at(0)", RAISED, "SIGSEGV"),
    "recursion without end": Fault("return self.forward(x)", RAISED, "RecursionError"),
    "recursion through the stack's end": Fault(
        """
        sys.setrecursionlimit(1 << 30)
        class Deep:
            def __getattr__(self, name):
                return getattr(self, name + "x")
        return Deep().y
        """,
        (*RAISED, "out_of_memory"),
    ),
    "an exception of its own kind": Fault(
        "raise Strange('so')", RAISED, before="class Strange(BaseException): pass"
    ),
    "closing all descriptors": Fault("os.closerange(0, 1 << 16); return x", RAISED),
    "abort in a thread": Fault(
        "threading.Thread(target=os.abort).start(); time.sleep(60)", RAISED, "SIGABRT"
    ),
}

LEFT = "left it there"
REMAINS = {
    "folders in folders": Fault(
        """
        try:
            for _ in range(2000):
                os.mkdir("d")
                os.chdir("d")
        finally:  # on a GPU, kernels are compiled by a call of its own before
            raise RuntimeError("left it there")
        """,
        RAISED,
        LEFT,
    ),
    "a folder that is closed": Fault(
        """
        try:
            Path("closed/inside").mkdir(parents=True)
            Path("closed").chmod(0)
        finally:
            raise RuntimeError("left it there")
        """,
        RAISED,
        LEFT,
    ),
    "a folder in shared memory": Fault(
        """
        try:
            Path(f"/dev/shm/folder-{os.getpid()}/inside").mkdir(parents=True)
        finally:
            raise RuntimeError("left it there")
        """,
        RAISED,
        LEFT,
    ),
    "a mapped file whose name is no text": Fault(
        r"""
        file = os.open(b"\xff\xfe", os.O_RDWR | os.O_CREAT)
        os.write(file, bytes(4096))
        global mapped
        mapped = mmap.mmap(file, 4096)
        raise RuntimeError("left it there")
        """,
        RAISED,
        LEFT,
    ),
    "a process whose name is no text": Fault(
        r"""
        ctypes.CDLL(None).prctl(15, b"\xff\xfe\xfd", 0, 0, 0)
        time.sleep(0.5)
        raise RuntimeError("left it there")
        """,
        RAISED,
        LEFT,
    ),
    "a message of line ends": Fault(
        r"""
        raise RuntimeError("x.cu(2): error: no" + 900_000 * "\n")
        """,
        ("compile_error", *RAISED),
    ),
    "a message like a compiler's, again and again": Fault(
        """
        raise RuntimeError("x.cu(2): error: " + 60_000 * "invalid layout: ")
        """,
        ("compile_error", *RAISED),
        "invalid layout",
    ),
}

HANGS = {
    "stopping itself": Fault("os.kill(os.getpid(), signal.SIGSTOP)", ("timeout",)),
    "an endless loop in C that holds the lock": Fault("any(itertools.repeat(False))", ("timeout",)),
    "ignoring every signal": Fault(
        """
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True: pass
        """,
        ("timeout",),
    ),
}

GREED = {
    "a fork bomb": Fault(
        """
        for _ in range(12):
            if os.fork() == 0:
                os.setsid()
        time.sleep(600)
        """,
        ("rejected",),
        "processes and threads",
    ),
    "forks that flee from their parents": Fault(
        """
        while True:
            if os.fork():
                os._exit(0)
            os.setsid()
        """,
        (*RAISED, "rejected"),
    ),
    "a hundred thousand threads": Fault(
        """
        for _ in range(100_000):
            threading.Thread(target=time.sleep, args=(600,)).start()
        """,
        ("rejected",),
        "processes and threads",
    ),
    "200 GB at once": Fault(
        "return torch.ones(200 * 2**30 // 4, device=x.device)", ("out_of_memory",)
    ),
    "a full disk": Fault(
        """
        block = bytes(64 << 20)
        for i in range(16):
            with open(f"file-{i}", "wb") as file:
                for _ in range(4):
                    file.write(block)
        time.sleep(600)
        """,
        ("rejected",),
        "wrote more than 1 GiB",
    ),
    "output without end": Fault(
        """
        block = b"x" * (8 << 20)
        for _ in range(10_240 // 8):
            os.write(1, block)
        """,
        (*RAISED, "rejected"),
    ),
    "a message without end": Fault(
        """
        block = bytes(8 << 20)
        for fd in range(3, 50):
            try:
                while True:
                    os.write(fd, block)
            except OSError:
                pass
        """,
        (*RAISED, "rejected", "timeout"),
    ),
}

CPU_GREED = {
    "memory in many processes": Fault(
        """
        children = [os.fork() for _ in range(4)]
        kept = bytearray(os.urandom(1 << 20) * 300)
        time.sleep(60)
        """,
        ("out_of_memory",),
        "GiB of memory in all",
    ),
    "shared memory": Fault(
        """
        shared = mmap.mmap(-1, 4 << 30)
        for _ in range(4 << 4):
            shared.write(bytes(64 << 20))
        time.sleep(60)
        """,
        ("out_of_memory",),
        "GiB of memory in all",
    ),
    "memory files": Fault("os.memfd_create('much')", RAISED, DENIED),
}

ATTACKS = {
    "killing its parent": Fault(
        # In a child that compiles ahead, the parent is the candidate's own process.
        "os.kill(os.getppid(), signal.SIGKILL)",
        (*RAISED, "out_of_memory"),
    ),
    "slowing its parent": Fault("os.sched_setaffinity(os.getppid(), {0})", RAISED, DENIED),
    "reading its parent's environment": Fault(
        "Path(f'/proc/{os.getppid()}/environ').read_bytes()", RAISED, DENIED
    ),
    "reading its parent's memory": Fault(
        "Path(f'/proc/{os.getppid()}/maps').read_bytes()", RAISED, DENIED
    ),
    "looking into the judge's folder": Fault("os.listdir('..')", RAISED, DENIED),
    "taking the device's lock": Fault("open('LOCK')", RAISED, DENIED),
    "writing elsewhere": Fault(
        "open('/tmp/left-by-a-candidate', 'w')", RAISED, "left-by-a-candidate"
    ),
    "connecting out": Fault("socket.create_connection(('1.1.1.1', 53), timeout=3)", RAISED, DENIED),
}


DEVICES = [
    pytest.param("cpu", id="cpu"),
    pytest.param("cuda:0", id="cuda", marks=pytest.mark.gpu),
]


@contextmanager
def prepared(server, device, timeout_s):
    problem = Problem("example", PROBLEM, "cpp" if device == "cpu" else "triton", device)
    evaluator = LocalEvaluator(
        server, problem, timeout_s=timeout_s, memory_bytes=MEMORY_BYTES, brief=True
    )
    evaluator.prepare()
    evaluator.device = device
    yield evaluator
    evaluator.close()


@pytest.fixture(scope="module", params=DEVICES)
def evaluator(request, server):
    with prepared(server, request.param, ENOUGH_S) as evaluator:
        yield evaluator


@pytest.fixture(scope="module", params=DEVICES)
def hasty_evaluator(request, server):
    with prepared(server, request.param, SHORT_S[request.param]) as evaluator:
        yield evaluator


def check(evaluator, fault: Fault):
    verdict = evaluator.evaluate(candidate(fault.body, fault.before))
    assert verdict.status in fault.statuses, getattr(verdict, "reason", "")
    assert fault.words in verdict.reason
    assert "\n" not in verdict.reason
    check_good(evaluator)


def check_good(evaluator):
    verdict = evaluator.evaluate(candidate(RIGHT))
    assert (verdict.status, getattr(verdict, "reason", "")) == ("passed", "")


@pytest.mark.parametrize(
    "how", of_which_fast(CRASHES, "segmentation fault", "recursion without end")
)
def test_a_crash(evaluator, how):
    check(evaluator, CRASHES[how])


@pytest.mark.parametrize("how", of_which_fast(REMAINS, *REMAINS))
def test_what_a_candidate_leaves_behind(evaluator, how):
    check(evaluator, REMAINS[how])


def test_a_link_in_place_of_its_output_is_not_followed(evaluator):
    body = """
        for name in ("log.txt", f"../{Path.cwd().name}.log"):
            try:
                Path(name).unlink(missing_ok=True)
                Path(name).symlink_to("/etc/passwd")
            except OSError:
                pass
        os.write(2, b"said before its end")
        os._exit(3)
    """
    verdict = evaluator.evaluate(candidate(body))
    assert verdict.status == "runtime_error"
    assert verdict.detail == "said before its end"
    check_good(evaluator)


def test_a_judge_that_runs_out_of_memory_judges_the_next_candidate(server, tmp_path):
    full = tmp_path / "full"
    forward = "    def forward(self, x):\n"
    lacks = f"        if os.path.exists({str(full)!r}):\n            raise MemoryError\n"
    source = "import os\n" + PROBLEM.replace(forward, forward + lacks)
    problem = Problem("example", source, "cpp", "cpu")
    evaluator = LocalEvaluator(
        server, problem, timeout_s=ENOUGH_S, memory_bytes=MEMORY_BYTES, brief=True
    )
    try:
        evaluator.prepare()
        full.touch()
        verdict = evaluator.evaluate(candidate(RIGHT))
        full.unlink()
        check_good(evaluator)
    finally:
        evaluator.close()
    assert verdict.status == "out_of_memory"
    assert "the judge has too little memory" in verdict.reason


@pytest.mark.parametrize("how", HANGS)
@pytest.mark.slow
def test_a_hang(hasty_evaluator, how):
    check(hasty_evaluator, HANGS[how])


@pytest.mark.parametrize("how", of_which_fast(GREED, "a fork bomb", "200 GB at once"))
def test_greed(evaluator, how):
    check(evaluator, GREED[how])


@pytest.mark.parametrize("how", of_which_fast(CPU_GREED, "memory files"))
@pytest.mark.slow
def test_greed_for_memory(evaluator, how):
    if evaluator.device != "cpu":
        pytest.skip("on a GPU machine a candidate may have half of the host's memory")
    check(evaluator, CPU_GREED[how])


@pytest.mark.parametrize(
    "how",
    of_which_fast(
        ATTACKS,
        "killing its parent",
        "reading its parent's memory",
        "looking into the judge's folder",
        "connecting out",
    ),
)
def test_an_attack(evaluator, how):
    lock = str(lock_file(evaluator.device))
    check(evaluator, replace(ATTACKS[how], body=ATTACKS[how].body.replace("LOCK", lock)))


def test_a_signal_to_everybody_reaches_nobody(evaluator):
    """SIGURG, which does nothing unasked: with SIGKILL a broken sandbox would end the session.

    Whom signals reach is tested in `tests/unit/sandbox`.
    """
    body = "os.kill(-1, signal.SIGURG)\n" + textwrap.dedent(RIGHT)
    verdict = evaluator.evaluate(candidate(body))
    assert (verdict.status, getattr(verdict, "reason", "")) == ("passed", "")


def test_the_problem_is_nowhere_to_be_found(evaluator):
    """Looks through every file and every process that it can."""
    body = f"""
        words = {SECRET[:10]!r} + {SECRET[10:]!r}
        places = [Path.cwd().parent, Path.cwd().parents[1], Path("/tmp")]
        for pid in set(os.listdir("/proc")) - {{"self", "thread-self", str(os.getpid())}}:
            for name in ("environ", "cmdline", "cwd", "root", "fd"):
                places.append(Path("/proc", pid, name))
        for place in places:
            try:
                files = [place] if place.is_file() else list(place.iterdir())
                texts = [f.read_bytes() for f in files if f.is_file()]
            except OSError:
                continue
            if any(words.encode() in text for text in texts):
                raise LookupError("found")
    """
    verdict = evaluator.evaluate(candidate(textwrap.dedent(body) + textwrap.dedent(RIGHT)))
    assert (verdict.status, getattr(verdict, "reason", "")) == ("passed", "")


@pytest.mark.slow
def test_shrinking_the_memory_that_the_judge_reads(evaluator):
    if evaluator.device != "cpu":
        pytest.skip("memory files are the CPU's")
    body = """
        for fd in range(3, 200):
            try:
                os.ftruncate(fd, 0)
            except OSError:
                pass
    """
    verdict = evaluator.evaluate(candidate(textwrap.dedent(body) + textwrap.dedent(RIGHT)))
    assert (verdict.status, getattr(verdict, "reason", "")) == ("passed", "")
    check_good(evaluator)


KERNELS = """
import triton
import triton.language as tl

@triton.jit
def spin(out, x):
    while tl.load(x, volatile=True) > -1e30:
        tl.store(out, 1.0)

@triton.jit
def wild(x):
    tl.store(x + (1 << 40), 1.0)
"""

GPU_HANGS = {
    "an endless kernel": Fault(
        "spin[(1,)](torch.empty_like(x), x); torch.cuda.synchronize(); return x",
        ("timeout",),
        before=KERNELS,
    ),
    "an endless kernel that nobody waits for": Fault(
        "spin[(1,)](torch.empty_like(x), x); return torch.relu(x) * 2",
        ("timeout",),
        before=KERNELS,
    ),
}

GPU_FAULTS = {
    "an illegal access": Fault(
        "wild[(1,)](x); torch.cuda.synchronize(); return x",
        RAISED,
        "illegal memory access",
        KERNELS,
    ),
    "an illegal access that nobody waits for": Fault(
        "wild[(1,)](x); return x", RAISED, "illegal memory access", KERNELS
    ),
    "a failed assertion": Fault(
        "return x.flatten()[torch.full((1,), 1 << 40, device=x.device)]", RAISED, "assert"
    ),
    "all of the device's memory": Fault(
        """
        kept = []
        while True:
            kept.append(torch.ones(1 << 28, device=x.device))
        """,
        ("out_of_memory",),
    ),
}


@pytest.mark.gpu
@pytest.mark.parametrize("how", GPU_FAULTS)
@pytest.mark.parametrize("evaluator", ["cuda:0"], indirect=True)
def test_a_fault_of_the_gpu(evaluator, how):
    check(evaluator, GPU_FAULTS[how])


@pytest.mark.gpu
@pytest.mark.parametrize("how", GPU_HANGS)
@pytest.mark.parametrize("hasty_evaluator", ["cuda:0"], indirect=True)
def test_a_kernel_that_does_not_end(hasty_evaluator, how):
    check(hasty_evaluator, GPU_HANGS[how])
