"""Denied and allowed operations of a confined worker.

A worker that is not confined does every denied action, so each test fails without its mechanism.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from worker_entries import SLEEPER

from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.walls import landlock
from adaexplore.sandbox.walls.limits import ResourceLimits

ENOUGH_S = 60.0
DENIED = ("PermissionError", "OSError")  # by Landlock, and by a mount that is read only
IN_FORCE = "adaexplore.sandbox.walls.isolation:in_force"


@pytest.fixture
def python(server):
    """Run code in a fresh worker; return its `result`, or the name of its exception."""
    workers = []

    def python(code, given=None, confined="cpu"):
        limits = ResourceLimits(file_bytes=1 << 30)
        workers.append(
            server.spawn("worker_entries:act", name="worker", confined=confined, limits=limits)
        )
        reply = workers[-1].call({"do": "python", "code": code, "given": given}, ENOUGH_S)
        return reply["raised"] if "raised" in reply else reply["result"]

    yield python
    for worker in workers:
        worker.kill()


@pytest.fixture(scope="module")
def in_force(server):
    return run_job(server, IN_FORCE, {}, ENOUGH_S, confined="cpu")


@pytest.fixture
def needs(in_force):
    def needs(subject, mechanism=""):
        if mechanism not in (in_force[subject] or "nothing"):
            pytest.skip(f"this kernel or container has no {mechanism or 'way'} for {subject}")

    return needs


@pytest.fixture
def stranger():
    """A process that the worker has nothing to do with."""
    process = subprocess.Popen(SLEEPER)
    yield process
    process.kill()
    process.wait()


LISTENER = """
import os, signal, time
signal.signal(signal.SIGURG, lambda *_: os._exit(7))
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def listener():
    """A process that ends with code 7 when SIGURG reaches it."""
    process = subprocess.Popen([sys.executable, "-c", LISTENER], stdout=subprocess.PIPE)
    assert process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


FILES = {
    "reading": "result = open(f'{given}/kept').read()",
    "listing": "import os; result = os.listdir(given)",
    "writing": "result = open(f'{given}/new', 'w').write('new')",
    "overwriting": "result = open(f'{given}/kept', 'a').write('new')",
    "removing": "import os; result = os.remove(f'{given}/kept')",
    "renaming": "import os; result = os.rename(f'{given}/kept', f'{given}/other')",
    "running": "import subprocess; result = subprocess.run([f'{given}/tool']).returncode",
}


ATTRIBUTES = {
    "mode": "import os; os.chmod(f'{given}/kept', 0o604)",
    "mode, by a descriptor": """
import os
file = os.open(f'{given}/kept', os.O_PATH)
os.chmod(f'/proc/self/fd/{file}', 0o604)
""",
    "owner": "import os; os.chown(f'{given}/kept', os.getuid(), os.getgid())",
    "times": "import os; os.utime(f'{given}/kept', (0, 0))",
    "attributes": "import os; os.setxattr(f'{given}/kept', 'user.so', b'x')",
}


class TestFiles:
    @pytest.fixture
    def elsewhere(self, tmp_path):
        (tmp_path / "kept").write_text("secret")
        (tmp_path / "tool").write_text("#!/bin/sh\n")
        (tmp_path / "tool").chmod(0o755)
        return str(tmp_path)

    @pytest.mark.parametrize("how", FILES)
    def test_files_of_others_are_inaccessible(self, python, needs, elsewhere, how):
        needs("files")
        assert python(FILES[how], elsewhere) in DENIED
        assert Path(elsewhere, "kept").read_text() == "secret"
        assert python(FILES[how], elsewhere, confined=None) != "PermissionError"

    @pytest.mark.parametrize("what", ATTRIBUTES)
    def test_what_landlock_leaves_open_is_closed(self, python, elsewhere, what):
        if python("import os; os.chmod('/', 0o755)") is None:
            pytest.skip("this kernel or container has no mount namespaces")
        kept = Path(elsewhere, "kept")
        before = kept.stat()
        assert python(ATTRIBUTES[what], elsewhere) == "OSError"
        after = kept.stat()
        assert (after.st_mode, after.st_mtime, after.st_ctime) == (
            *(before.st_mode, before.st_mtime, before.st_ctime),
        )
        assert python(ATTRIBUTES[what], elsewhere, confined=None) is None

    def test_files_of_other_workers_are_inaccessible(self, python, needs, server):
        needs("files")
        other = server.spawn("worker_entries:echo", name="other")
        assert python("import os; os.listdir(given)", str(other.folder)) == "PermissionError"
        other.kill()

    def test_files_of_the_system_are_read_only(self, python, needs):
        needs("files")
        assert python("result = len(open('/proc/cpuinfo').read())") > 0
        assert python("open('/proc/sys/kernel/core_pattern', 'a')") in DENIED
        assert python("import os; open(os.__file__, 'a')") in DENIED
        assert python("open('/etc/shadow')") == "PermissionError"

    def test_files_in_its_own_folder_are_writable(self, python):
        code = """
import os, subprocess, tempfile
from pathlib import Path
Path("a/b").mkdir(parents=True)
Path("a/tool").write_text("#!/bin/sh\\nexit 7\\n")
Path("a/tool").chmod(0o755)
os.rename("a/tool", "a/b/tool")
with tempfile.NamedTemporaryFile() as file:
    inside = file.name.startswith(os.getcwd())
result = [inside, subprocess.run(["a/b/tool"]).returncode]
"""
        assert python(code) == [True, 7]


class TestNetwork:
    @pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"])
    @pytest.mark.parametrize("confined", ["cpu", "gpu"])
    def test_no_socket_can_be_created(self, python, needs, family, confined):
        needs("network", "seccomp")
        code = f"import socket; socket.socket(socket.{family}, socket.SOCK_DGRAM).close()"
        assert python(code, confined=confined) == "PermissionError"
        assert python(code, confined=None) is None

    def test_the_only_interface_is_loopback(self, python, needs):
        needs("network", "namespace")
        lines = python("result = open('/proc/net/dev').read()").splitlines()[2:]
        assert [line.partition(":")[0].strip() for line in lines] == ["lo"]

    def test_socket_pairs_are_available(self, python):
        code = """
import socket
left, right = socket.socketpair()
left.send(b"x")
result = right.recv(1).decode()
"""
        assert python(code) == "x"

    def test_datagram_socket_pairs_are_denied(self, python, needs):
        needs("network", "seccomp")
        code = "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)"
        assert python(code) == "PermissionError"

    def test_the_gpu_driver_can_pass_its_descriptor(self, python):
        code = """
import socket
listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listening.bind("\\0cuda-like")
listening.listen()
calling = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
calling.connect("\\0cuda-like")
"""
        assert python(code, confined="gpu") is None


LIBC = "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
CHECKED = "if libc.{} < 0: raise OSError(ctypes.get_errno(), 'no')"
TARGETED = {
    "signals": ("import os; os.kill(given, 0)", "signals"),
    "its environment": ("open(f'/proc/{given}/environ').read()", "files"),
    "its memory": ("open(f'/proc/{given}/mem', 'rb')", "files"),
    "its descriptors": ("import os; os.readlink(f'/proc/{given}/fd/0')", "files"),
    "its memory by a call": (
        LIBC + CHECKED.format("process_vm_readv(given, 0, 0, 0, 0, 0)"),
        "system_calls",
    ),
    "its cores": (
        "import os; os.sched_setaffinity(given, os.sched_getaffinity(0))",
        "system_calls",
    ),
    "its priority": (
        "import os; os.setpriority(os.PRIO_PROCESS, given, os.getpriority(0, given))",
        "system_calls",
    ),
    "its limits": (
        "import resource as r; r.prlimit(given, r.RLIMIT_CORE, r.prlimit(given, r.RLIMIT_CORE))",
        "system_calls",
    ),
}


class TestOtherProcesses:
    @pytest.mark.parametrize("what", TARGETED)
    def test_other_processes_are_inaccessible(self, python, needs, stranger, what):
        code, subject = TARGETED[what]
        needs(subject)
        assert python(code, stranger.pid) == "PermissionError"
        assert python(code, stranger.pid, confined=None) is None

    def test_a_signal_to_all_processes_does_not_reach_others(self, python, needs, listener):
        """By SIGURG, which everybody else ignores: a broken sandbox must not end the session."""
        needs("signals")
        code = "import os, signal\ntry: os.kill(-1, signal.SIGURG)\nexcept OSError: pass"
        python(code)
        with pytest.raises(subprocess.TimeoutExpired):
            listener.wait(0.3)
        python(code, confined=None)
        assert listener.wait(ENOUGH_S) == 7

    def test_its_own_processes_are_accessible(self, python):
        code = """
import os, subprocess, time
child = subprocess.Popen(["sleep", "600"])
os.sched_setaffinity(child.pid, os.sched_getaffinity(0))
os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
os.kill(child.pid, 0)
child.terminate()
result = child.wait()
"""
        assert python(code) == -15


SYSTEM_CALLS = {
    "a user namespace": LIBC + CHECKED.format("unshare(0x10000000)"),
    "memory files": "import os; os.memfd_create('x')",
    "shared memory that outlives it": LIBC + CHECKED.format("shmget(0, 4096, 0o1600)"),
    "letting go of its orphans": LIBC + CHECKED.format("prctl(36, 0, 0, 0, 0)"),
    "outliving its server": LIBC + CHECKED.format("prctl(1, 0, 0, 0, 0)"),
    "a timer that wakes it": LIBC
    + "event = ctypes.create_string_buffer(bytes(8) + b'\\x12', 64)  # SIGEV_SIGNAL, SIGCONT\n"
    + CHECKED.format("timer_create(1, event, ctypes.byref(ctypes.c_void_p()))"),
    "input that wakes it": "import fcntl, os; fcntl.fcntl(os.pipe()[0], 10, 18)",
    "a child whose end wakes it": LIBC
    + "from adaexplore.sandbox.walls.syscalls import number\n"
    + "child = libc.syscall(number('clone'), 18, 0, 0, 0, 0)\n"
    + "if child == 0: libc._exit(0)\n"
    + "if child < 0: raise OSError(ctypes.get_errno(), 'no')",
    "a child that is a sibling": LIBC
    + "from adaexplore.sandbox.walls.syscalls import number\n"
    + "child = libc.syscall(number('clone'), 0x8000 | 17, 0, 0, 0, 0)\n"
    + "if child == 0: libc._exit(0)\n"
    + "if child < 0: raise OSError(ctypes.get_errno(), 'no')",
    "another's files by handle": LIBC + CHECKED.format("open_by_handle_at(-1, 0, 0)"),
}


class TestSystemCalls:
    @pytest.mark.parametrize("what", SYSTEM_CALLS)
    def test_system_calls_are_denied(self, python, needs, what):
        needs("system_calls")
        assert python(SYSTEM_CALLS[what]) == "PermissionError"
        assert python(SYSTEM_CALLS[what], confined=None) in (None, "OSError")

    def test_root_has_no_privileges_left(self, python):
        code = "result = [l.split()[1] for l in open('/proc/self/status') if l[:6] == 'CapEff']"
        assert [int(mask, 16) for mask in python(code)] == [0]
        again = "import subprocess; result = subprocess.check_output(['cat', '/proc/self/status'])"
        assert "CapEff:\t0000000000000000" in python(again + ".decode()")

    def test_memory_files_are_available_to_a_gpu_driver(self, python):
        assert python("import os; os.close(os.memfd_create('x'))", confined="gpu") is None


class TestHonestWork:
    def test_c_code_can_be_compiled_and_loaded(self, python):
        code = """
import ctypes, subprocess
from pathlib import Path
Path("seven.cpp").write_text('extern "C" int seven() { return 7; }')
subprocess.run(["g++", "-shared", "-fPIC", "seven.cpp", "-o", "seven.so"], check=True)
result = ctypes.CDLL("./seven.so").seven()
"""
        assert python(code) == 7

    def test_torch_can_use_threads(self, python):
        code = """
import torch
torch.set_num_threads(4)
result = float(torch.ones(1 << 22).sum())
"""
        assert python(code) == 1 << 22

    def test_modules_that_were_not_yet_imported(self, python):
        code = "import sys; result = 'wsgiref' in sys.modules; import wsgiref.util"
        assert python(code) is False

    def test_a_process_pool_works(self, python, needs):
        needs("network", "namespace")  # with shared memory of its own
        code = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
    result = list(pool.map(abs, [-1, -2]))
"""
        assert python(code) == [1, 2]


class TestSharedMemory:
    def test_shared_memory_is_separate_from_the_machines(self, python, needs):
        needs("network", "namespace")
        name = f"/dev/shm/adaexplore-test-{os.getpid()}"
        assert python("result = open(given, 'w').write('x')", name, confined="gpu") == 1
        assert not Path(name).exists()

    def test_remains_of_an_ended_worker_are_removed(self, server, python, needs):
        needs("network", "namespace")
        worker = server.spawn("worker_entries:act", name="worker", confined="gpu")
        code = "open('/dev/shm/left', 'w').write('x')"
        worker.call({"do": "python", "code": code}, ENOUGH_S)
        assert "left" in python("import os; result = os.listdir('/dev/shm')", confined="gpu")
        worker.kill()
        assert "left" not in python("import os; result = os.listdir('/dev/shm')", confined="gpu")

    def test_files_of_a_live_worker_are_kept(self, server, python, needs):
        needs("network", "namespace")
        worker = server.spawn("worker_entries:act", name="worker", confined="gpu")
        code = """
import mmap
with open("/dev/shm/used", "w+b") as file:
    file.write(bytes(4096))
    file.flush()
    globals()["kept"] = __builtins__["__import__"]("sys").modules["used"] = mmap.mmap(
        file.fileno(), 4096
    )
"""
        worker.call({"do": "python", "code": code}, ENOUGH_S)
        other = server.spawn("worker_entries:echo", name="worker")
        other.kill()
        assert "used" in python("import os; result = os.listdir('/dev/shm')", confined="gpu")
        worker.kill()


class TestInForce:
    def test_every_subject_has_a_mechanism_or_a_line_for_the_user(self, in_force):
        subjects = {"network", "files", "signals", "system_calls", "processes"}
        assert in_force.keys() == subjects | {"missing"}
        silent = {s for s in subjects if not in_force[s] and s != "processes"}
        assert len(in_force["missing"]) == len(silent)

    def test_landlock_is_used_where_the_kernel_has_it(self, in_force):
        assert bool(in_force["files"]) == (landlock.version() > 0)
        assert ("landlock" in in_force["signals"]) == landlock.scopes_signals()

    def test_seccomp_is_used_where_the_kernel_has_it(self, in_force):
        actions = Path("/proc/sys/kernel/seccomp/actions_avail")
        if not actions.exists() or "user_notif" not in actions.read_text():
            pytest.skip("this kernel has no seccomp with a supervisor")
        assert in_force["system_calls"] == "seccomp"
        assert in_force["processes"] == "seccomp, watch"

    def test_root_gets_namespaces(self, in_force):
        try:
            probe = subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True)
        except FileNotFoundError:
            pytest.skip("no unshare program to compare with")
        if probe.returncode:
            pytest.skip("namespaces are forbidden here")
        assert "namespace" in in_force["network"]

    @pytest.mark.parametrize("failing", ["seccomp", "landlock"])
    def test_a_mechanism_that_failed_is_reported_as_missing(self, python, in_force, failing):
        code = f"""
import os
from pathlib import Path
from adaexplore.sandbox.walls import isolation, landlock, seccomp

def fail(**options):
    raise OSError("none here")

if {failing!r} == "seccomp":
    seccomp.install = fail
else:
    landlock.restrict = lambda rules, scope_sockets: False
isolation.confine(Path(os.getcwd()), Path(os.getcwd()), gpu=False)
result = isolation.in_force({{}})
"""
        found = python(code, confined=None)
        lines = "\n".join(found["missing"])
        if failing == "seccomp":
            assert found["system_calls"] == ""
            assert "seccomp" not in found["network"] + found["signals"]
            assert found["processes"] == "watch"
            assert "candidates can make any system call: seccomp is not available here" in lines
        else:
            assert found["files"] == ""
            assert "landlock" not in found["signals"]
            assert "candidates can read your files: this kernel has no Landlock" in lines
