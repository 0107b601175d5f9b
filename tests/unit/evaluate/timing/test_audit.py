"""Real processes that work or rest; the walls and the times are made up, so results are exact."""

import subprocess
import sys
import time

import pytest

from adaexplore.evaluate.timing.audit import Audit, Own, ProcessAccount, excess
from adaexplore.evaluate.timing.cpu_time import CpuMeter
from adaexplore.evaluate.timing.turnstile.protocol import Passages
from adaexplore.sandbox.family import children

OWN = Own(overhead_us=10.0)

SLEEP = "import time; time.sleep(600)"
SPIN = "while True: pass"
SPIN_IN_A_CHILD = f"""
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    exec({SPIN!r})
time.sleep(600)
"""
SPIN_WHEN_A_CHILD_HAS_VANISHED = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    while time.process_time() < 1.0: pass
    os._exit(0)
try: os.wait()
except ChildProcessError: pass
while True: pass
"""


@pytest.fixture
def process():
    started = []

    def start(program):
        started.append(subprocess.Popen([sys.executable, "-c", program], start_new_session=True))
        return started[-1].pid

    yield start
    for one in started:
        subprocess.run(["pkill", "-KILL", "-P", str(one.pid)], check=False)
        one.kill()
        one.wait()


def block(
    audit,
    window_us,
    times_us,
    *,
    own=OWN,
    waited_us=0.0,
    cpu_s=0.0,
    between_us=0.0,
    worked_us=0.0,
    entering_us=(),
):
    """Tell the audit of a block whose calls have windows of one length."""
    start, end = ProcessAccount(0.0, 0.0), ProcessAccount(waited_us, cpu_s)
    windows = window_us if isinstance(window_us, list) else [window_us] * len(times_us)
    worked = [worked_us] * len(times_us)
    passages = Passages(windows, between_us, worked, entering_us=list(entering_us))
    audit.block(start, end, passages, times_us, own)


def counted(window_us, times_us, *, device="cpu", **more):
    """Return the times of a block as they count, with what the audit adds to each."""
    audit = Audit(1, device, threads=2)
    block(audit, window_us, times_us, **more)
    return [t + max(audit.open_us(), 0.0) for t in times_us]


def audited(pid, window_us, times_us, *, device="cuda:0", **more):
    audit = Audit(pid, device, threads=2)
    for _ in range(3):
        block(audit, window_us, times_us, **more)
    return audit.objection()


class TestBlocks:
    def test_times_that_fill_the_block_are_believed(self):
        assert audited(1, 1050.0, [1000.0] * 10) is None

    def test_times_that_leave_most_of_it_open_are_not(self):
        assert "out of the timer's sight" in audited(1, 2000.0, [1000.0] * 10)

    def test_overhead_is_part_of_the_account(self):
        assert audited(1, 2000.0, [1000.0] * 10, own=Own(1000.0)) is None

    def test_waiting_for_a_processor_is_nobody_s_fault(self):
        assert audited(1, 2000.0, [1000.0] * 10, waited_us=9_000.0) is None

    def test_waiting_that_comes_from_working_much_is(self):
        objection = audited(1, 2000.0, [1000.0] * 10, waited_us=9_000.0, cpu_s=0.2)
        assert "CPU time" in objection

    def test_threads_that_wait_while_inputs_are_copied_have_not_worked(self):
        assert audited(1, 1050.0, [1000.0] * 10, cpu_s=0.2, between_us=90_000.0) is None

    def test_waking_threads_is_allowed_for_on_the_cpu(self):
        assert audited(1, 250.0, [50.0] * 20) is not None
        assert audited(1, 250.0, [50.0] * 20, device="cpu") is None

    @pytest.mark.parametrize("walls", [(101, 900, 101), (200, 900, 101)], ids=["one", "two"])
    def test_disturbed_blocks_are_forgiven_for_the_sake_of_one_that_is_not(self, walls):
        audit = Audit(1, "cuda:0", threads=2)
        for wall_ms in walls:
            block(audit, wall_ms * 1000.0, [100_000.0])
        assert audit.objection() is None

    def test_a_short_first_block_excuses_none_of_the_full_ones(self):
        audit = Audit(1, "cuda:0", threads=2)
        for count, window_us in ((1, 1_000.0), (20, 2_000.0), (20, 2_000.0)):
            block(audit, window_us, [1_000.0] * count)
        assert "out of the timer's sight" in audit.objection()

    def test_many_short_calls_on_a_busy_machine_are_believed(self):
        assert audited(1, 45.0, [25.0] * 512) is None

    @pytest.mark.parametrize("told_us", [1.0, 20.0, 100.0])
    def test_what_a_window_leaves_open_is_added_to_the_times(self, told_us):
        times = counted(130.0, [told_us] * 100)
        allowed_us = max(0.1 * told_us, 1.0)
        assert times == pytest.approx([120.0 - allowed_us] * 100)

    def test_no_more_than_ten_microseconds_of_a_long_call_may_be_left_open(self):
        assert counted(5_030.0, [5_000.0] * 4) == [5_010.0] * 4

    def test_one_call_that_was_disturbed_is_no_reason_to_add_to_all(self):
        windows = [110.0] * 9 + [4_000.0]
        times = counted(windows, [100.0] * 10)
        assert times == [100.0] * 10

    def test_hidden_work_in_most_calls_is_added_however_the_others_are(self):
        told = [1.0] * 6 + [100.0] * 4
        times = counted(110.0, told)
        assert sorted(times)[4] >= 90.0

    def test_times_that_are_too_short_by_turns_gain_nothing(self):
        told = [50.0, 100.0] * 50 + [50.0]
        windows = [110.0] * 100 + [10.0]  # the last call is left out
        times = counted(windows, told)
        assert sorted(times)[50] >= 90.0

    def test_on_a_gpu_calls_that_are_told_too_short_now_and_then_gain_nothing(self):
        told = [100.0] * 60 + [10.0] * 40
        times = counted(110.0, told, device="cuda:0")
        assert sum(times) >= 96.0 * 100 - 90.0 * 5

    def test_on_a_gpu_windows_that_are_too_short_make_up_for_nothing(self):
        windows, told = [70.0] * 60 + [110.0] * 40, [60.0] * 60 + [10.0] * 40
        times = counted(windows, told, device="cuda:0")
        assert sum(times) >= 60.0 * 60 + 100.0 * 40 - 90.0 * 5 - 4.0 * 100
        windows[:60] = [30.0] * 60
        assert counted(windows, told, device="cuda:0") == times

    def test_on_a_gpu_windows_that_were_disturbed_add_nothing(self):
        windows = [110.0] * 38 + [4_000.0] * 2
        assert counted(windows, [100.0] * 40, device="cuda:0") == [100.0] * 40

    def test_on_a_gpu_work_that_is_launched_before_the_window_is_added_to_the_times(self):
        own = Own(overhead_us=10.0, entering_us=60.0)
        for late, added_us in ((11, 700.0), (9, 0.0)):
            entering = [1040.0] * late + [100.0] * (20 - late)
            times = counted(110.0, [100.0] * 20, device="cuda:0", own=own, entering_us=entering)
            assert times == pytest.approx([100.0 + added_us] * 20, abs=4.0)

    def test_on_a_gpu_short_calls_do_not_pay_for_a_busy_host(self):
        own = Own(overhead_us=10.0, entering_us=60.0)
        times = counted(110.0, [100.0] * 9, device="cuda:0", own=own, entering_us=[340.0] * 8)
        assert times == [100.0] * 9

    def test_on_a_gpu_short_calls_do_not_pay_for_a_host_that_delivers_slowly(self):
        own = Own(overhead_us=10.0, entering_us=60.0, delivering_us=200.0)
        assert own.head_start_s == pytest.approx(600e-6)
        for entering_us, added_us in ((740.0, 0.0), (1240.0, 500.0)):
            entering = [entering_us] * 8
            times = counted(110.0, [100.0] * 9, device="cuda:0", own=own, entering_us=entering)
            assert times == pytest.approx([100.0 + added_us] * 9, abs=4.0)

    def test_work_while_inputs_are_opened_is_added_to_the_times(self):
        assert counted(110.0, [100.0] * 10, worked_us=5.0) == [100.0] * 10
        times = counted(110.0, [100.0] * 10, worked_us=70.0)
        assert times == pytest.approx([150.0] * 10)  # 10 us to be woken, and 10 us as always

    def test_a_device_that_is_busy_while_all_is_still_is_seen(self):
        audit = Audit(1, "cuda:0", threads=2)
        for latency_us in (2_100.0, 1_900.0, 2_300.0):
            audit.latency(latency_us)
        for _ in range(2):
            audit.latency(40.0)
            assert "kernels run" in audit.objection()  # it was idle now and then
        for _ in range(2):
            audit.latency(40.0)
        assert audit.objection() is None

    def test_no_block_is_no_objection(self):
        assert Audit(1, "cpu", threads=2).objection() is None


class TestUneven:
    ALL_IN_ONE = [1_000.0] + [10.0] * 9

    def audited(self, blocks, own=OWN):
        audit = Audit(1, "cpu", threads=2)
        for times in blocks:
            block(audit, [t + 10.0 for t in times], times, own=own)
        return audit.objection()

    def test_calls_that_do_the_work_of_others_are_refused(self):
        assert "the work of others" in self.audited([self.ALL_IN_ONE] * 3)

    def test_a_single_even_block_shows_that_it_was_noise(self):
        assert self.audited([self.ALL_IN_ONE, [100.0] * 10, self.ALL_IN_ONE]) is None

    def test_baselines_that_are_as_uneven_excuse_it(self):
        assert self.audited([self.ALL_IN_ONE] * 3, Own(10.0, excess(self.ALL_IN_ONE))) is None

    def test_a_call_that_waited_for_a_processor_did_no_work_of_others(self):
        audit = Audit(1, "cpu", threads=2)
        for _ in range(3):
            windows = [t + 10.0 for t in self.ALL_IN_ONE]
            block(audit, windows, self.ALL_IN_ONE, waited_us=990.0)
        assert audit.objection() is None

    def test_a_fast_call_among_slow_ones_is_no_excess(self):
        assert excess([1.0, 100.0, 100.0]) == 0.0


class TestIdle:
    @pytest.mark.parametrize(
        ("program", "objects"),
        [(SLEEP, False), (SPIN, True), (SPIN_IN_A_CHILD, True)],
        ids=["rests", "works", "has a child work"],
    )
    def test_work_between_the_blocks_is_seen(self, process, eventually, program, objects):
        pid = process(program)
        if objects:
            assert eventually(lambda: CpuMeter(pid).read() > 0.1)
        else:
            time.sleep(0.3)  # for the interpreter to have started
        audit = Audit(pid, "cpu", threads=1)
        audit.idle_from_now()
        time.sleep(0.6)
        audit.idle_until_now()
        assert (audit.objection() is not None) == objects

    def test_a_child_that_vanishes_takes_no_work_of_others_with_it(self, process, eventually):
        pid = process(SPIN_WHEN_A_CHILD_HAS_VANISHED)
        assert eventually(lambda: CpuMeter(pid).read() > 0.6)
        audit = Audit(pid, "cpu", threads=1)
        audit.idle_from_now()
        assert eventually(lambda: not children(pid))
        time.sleep(0.3)
        audit.idle_until_now()
        assert "told to do nothing" in audit.objection()

    def test_work_in_an_earlier_span_is_not_forgotten(self, process, eventually):
        pid = process(SPIN)
        assert eventually(lambda: CpuMeter(pid).read() > 0.1)
        audit = Audit(pid, "cpu", threads=1)
        audit.idle_from_now()
        time.sleep(0.3)
        audit.idle_until_now()
        audit.idle_from_now()
        audit.idle_until_now()
        assert "while it was told to do nothing" in audit.objection()

    def test_work_that_was_asked_for_is_not_counted(self, process, eventually):
        pid = process(SPIN)
        assert eventually(lambda: CpuMeter(pid).read() > 0.1)
        audit = Audit(pid, "cpu", threads=1)
        audit.idle_from_now()
        audit.idle_until_now()
        time.sleep(0.3)
        audit.idle_until_now()
        assert audit.objection() is None


def test_an_ended_process_has_used_nothing():
    assert CpuMeter(2**22 + 1).read() == 0.0
