from dataclasses import replace

import pytest

from adaexplore.evaluate.judge.failures import COMPILING, LOADING, died, out_of_room, raised
from adaexplore.evaluate.truth.device_memory.room import FreeMemory
from adaexplore.evaluate.wire.messages import Place, Raised
from adaexplore.sandbox.process import WorkerDiedError

RUNNING, BUILDING = "running on the inputs 'own-0'", LOADING


def error(name, message="", *bases):
    return Raised(name, message, (name, *bases, "Exception"), f"Traceback: {name}")


class TestOutOfRoom:
    """Memory that ran out on a GPU of 80 GiB, of which the judge holds 10."""

    FOUND = raised(error("OutOfMemoryError", "CUDA out of memory."), RUNNING)

    @pytest.mark.parametrize(
        ("free", "status"),
        [(70, "out_of_memory"), (51, "out_of_memory"), (49, "infra_error"), (0, "infra_error")],
    )
    def test_it_is_the_candidate_s_failure_where_others_left_it_its_share(self, free, status):
        room = FreeMemory(free << 30, 80 << 30, 10 << 30)
        assert out_of_room(self.FOUND, room).status == status

    def test_more_than_a_candidate_may_have_is_its_own_failure(self):
        said = "CUDA out of memory. Tried to allocate 61.00 GiB. GPU 0 has 80.00 GiB"
        found = raised(error("OutOfMemoryError", said), RUNNING)
        room = FreeMemory(0, 80 << 30, 10 << 30)
        assert out_of_room(found, room).status == "out_of_memory"

    def test_the_reason_names_what_others_hold(self):
        found = out_of_room(self.FOUND, FreeMemory(20 << 30, 80 << 30, 10 << 30))
        assert (
            found.reason
            == "memory ran out on a GPU of which other processes hold 50.0 GiB of 80.0 GiB"
        )


class TestRaised:
    @pytest.mark.parametrize(
        ("problem", "status"),
        [
            (error("ValueError", "bad shape"), "runtime_error"),
            (error("IndentationError", "unexpected indent", "SyntaxError"), "compile_error"),
            (error("CompilationError", "at 3:4: unsupported"), "compile_error"),
            (error("CppCompileError", "C++ compile error"), "compile_error"),
            (error("RuntimeError", "Error building extension 'k'"), "compile_error"),
            (error("OutOfMemoryError", "CUDA out of memory.", "RuntimeError"), "out_of_memory"),
            (error("MemoryError"), "out_of_memory"),
            (
                error("RuntimeError", "DefaultCPUAllocator: can't allocate memory: you tried"),
                "out_of_memory",
            ),
        ],
    )
    def test_the_kind_of_exception_decides(self, problem, status):
        assert raised(problem, RUNNING).status == status

    def test_whatever_goes_wrong_before_it_runs_is_a_compile_error(self):
        assert raised(error("AttributeError", "no ModelNew"), BUILDING).status == "compile_error"

    def test_what_is_raised_after_that_leaves_it_loaded(self):
        found = {stage: raised(error("CompilationError"), stage) for stage in (RUNNING, BUILDING)}
        assert [failed.status for failed in found.values()] == ["compile_error"] * 2
        assert (found[RUNNING].loaded, found[BUILDING].loaded) == (True, False)

    def test_so_is_what_goes_wrong_while_compiling_ahead(self):
        assert raised(error("ValueError", "no"), COMPILING).status == "compile_error"

    def test_running_out_of_memory_is_that_at_any_stage(self):
        assert raised(error("MemoryError"), BUILDING).status == "out_of_memory"

    def test_the_reason_is_one_line_with_the_stage(self):
        verdict = raised(error("ValueError", "first\nsecond\nthird"), RUNNING)
        assert verdict.reason == f"ValueError: first (while {RUNNING})"
        assert verdict.detail == "Traceback: ValueError"

    def test_a_compiler_s_error_line_is_preferred_to_its_preamble(self):
        message = (
            "C++ compile error\n\nCommand:\ng++ x.cpp\nx.cpp:3:1: error: expected ';'\nnote: y"
        )
        verdict = raised(error("CppCompileError", message), RUNNING)
        assert verdict.reason == f"CppCompileError: expected ';' (x.cpp:3, while {RUNNING})"

    def test_the_line_is_in_the_reason_and_in_the_feedback(self):
        problem = replace(error("ValueError", "no"), places=(Place(2, "forward"),))
        verdict = raised(problem, RUNNING, "def forward(x):\n    return y\n")
        assert verdict.reason == f"ValueError: no (line 2 in forward, while {RUNNING})"
        assert (verdict.feedback.line, verdict.feedback.source_line) == (2, "return y")

    def test_an_exception_without_words_still_has_a_reason(self):
        assert raised(error("KeyError"), RUNNING).reason == f"KeyError (while {RUNNING})"

    def test_long_texts_are_cut(self):
        verdict = raised(replace(error("ValueError", "x" * 10**6), traceback="y" * 10**6), RUNNING)
        assert len(verdict.reason) < 1000
        assert len(verdict.detail) < 100_000


class TestDied:
    @pytest.mark.parametrize(
        ("status", "log", "expected"),
        [
            (-11, "", "runtime_error"),
            (0, "", "runtime_error"),
            (1, "Traceback", "runtime_error"),
            (None, "", "runtime_error"),
            (-9, "", "out_of_memory"),
            (
                -6,
                "terminate called after throwing an instance of 'std::bad_alloc'",
                "out_of_memory",
            ),
        ],
    )
    def test_the_way_it_ended_decides(self, status, log, expected):
        verdict = died(WorkerDiedError(status, log), RUNNING)
        assert verdict.status == expected
        assert RUNNING in verdict.reason
        assert verdict.detail == log

    def test_a_signal_has_its_name(self):
        assert "SIGSEGV" in died(WorkerDiedError(-11, ""), RUNNING).reason
