import importlib.util
import sys
import textwrap
from dataclasses import dataclass

import pytest

from adaexplore.evaluate.faults import describe, fault_of, headline
from adaexplore.evaluation import Fault

triton_only = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")


@dataclass
class Candidate:
    """A candidate's file, and what comes of running it."""

    folder: object
    source: str

    def fault(self, log="") -> Fault:
        file = self.folder / "candidate_1.py"
        file.write_text(self.source)
        with pytest.raises(BaseException) as caught:  # noqa: PT011 - whatever it raises
            exec(compile(self.source, str(file), "exec"), {"__name__": "candidate"})
        return fault_of(describe(caught.value, self.folder), self.source, log)


@pytest.fixture
def candidate(tmp_path):
    return lambda source: Candidate(tmp_path, textwrap.dedent(source).lstrip("\n"))


class TestPython:
    def test_the_innermost_line_of_the_candidate_s_own_file(self, candidate):
        fault = candidate("""
            import json

            def inner():
                return json.loads("nothing")  # the library raises, the candidate called it

            def forward():
                return inner()

            forward()
        """).fault()
        assert (fault.type, fault.line, fault.frame) == ("JSONDecodeError", 4, "inner")
        assert fault.source_line.startswith("return json.loads(")

    def test_the_root_of_a_chain_is_what_is_told(self, candidate):
        fault = candidate("""
            try:
                [][3]
            except IndexError as error:
                raise RuntimeError("something failed") from error
        """).fault()
        assert (fault.type, fault.message, fault.line) == (
            "IndexError",
            "list index out of range",
            2,
        )

    def test_a_traceback_begins_in_the_candidate_s_file(self, tmp_path):
        source = "def forward():\n    raise ValueError('no')\n"
        file = tmp_path / "candidate_1.py"
        scope = {}
        exec(compile(source, str(file), "exec"), scope)
        with pytest.raises(ValueError, match="no") as caught:
            scope["forward"]()
        text = describe(caught.value, tmp_path)["traceback"]
        assert "candidate_1.py" in text
        assert __file__ not in text

    def test_a_syntax_error_has_its_line(self, candidate):
        fault = candidate("x = 1\ndef f(:\n").fault()
        assert (fault.type, fault.line, fault.source_line) == ("SyntaxError", 2, "def f(:")

    def test_of_a_chain_the_one_that_quotes_a_compiler_is_told(self, candidate):
        fault = candidate("""
            class CalledProcessError(Exception): ...

            CODE = "int y = z;"
            try:
                raise CalledProcessError("Command ninja returned non-zero exit status 1.")
            except CalledProcessError as error:
                text = "Error building extension 'k':\\nmain.cpp:4:9: error: 'z' was not declared"
                raise RuntimeError(text) from error
        """).fault()
        assert (fault.type, fault.message) == ("RuntimeError", "'z' was not declared")

    def test_a_chain_tied_into_a_knot_ends(self, tmp_path):
        error = ValueError("round and round")
        error.__cause__ = error
        assert describe(error, tmp_path)["type"] == "ValueError"

    @pytest.mark.parametrize(
        "places",
        [
            [{"line": 10**9, "frame": "f", "kernel": ""}],
            [{"line": -1, "frame": "f", "kernel": ""}],
            [{"line": "1", "frame": "f", "kernel": ""}],
            [{"line": 2, "frame": "", "kernel": "def nowhere():\n    pass"}],
            ["nonsense", None, 3],
        ],
    )
    def test_a_forged_place_is_no_place(self, places):
        error = {"type": "ValueError", "message": "no", "places": places}
        assert fault_of(error, "x = 1\n") == Fault("ValueError", "no")


KERNELS = """
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def mean(v):
    return tl.sum(v, keepdim=True)


@triton.jit
def wrong_range(x_ptr, n, B: tl.constexpr):
    i = tl.arange(0, 100)
    tl.store(x_ptr + i, 0.0)


@triton.jit
def wrong_call(x_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x_ptr + i, mean(tl.load(x_ptr + i)))


def build(kernel):
    types = {"x_ptr": "*fp32", "n": "i32", "B": "constexpr"}
    triton.compile(ASTSource(kernel, types, {(2,): 64}), target=GPUTarget("cuda", 90, 32))

"""


@triton_only
class TestTriton:
    """Real compile errors; the kernels are read from a file, as the candidate's are."""

    @pytest.fixture
    def fault(self, tmp_path, monkeypatch):
        def fault(kernel):
            monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
            file = tmp_path / "candidate_kernels.py"
            file.write_text(KERNELS)
            monkeypatch.syspath_prepend(str(tmp_path))
            monkeypatch.delitem(sys.modules, "candidate_kernels", raising=False)
            import candidate_kernels

            with pytest.raises(Exception) as caught:  # noqa: PT011 - Triton's own types
                candidate_kernels.build(getattr(candidate_kernels, kernel))
            return fault_of(describe(caught.value, tmp_path), KERNELS)

        return fault

    def test_the_kernel_s_line(self, fault):
        found = fault("wrong_range")
        assert found.frame == "wrong_range"
        assert found.source_line == "i = tl.arange(0, 100)"
        assert found.line == KERNELS.splitlines().index("    i = tl.arange(0, 100)") + 1
        assert "power of 2" in found.message

    def test_in_a_helper_it_is_the_helper_s_line(self, fault):
        found = fault("wrong_call")
        assert (found.frame, found.source_line) == ("mean", "return tl.sum(v, keepdim=True)")
        assert "keepdim" in found.message


class TestCompilers:
    SOURCE = 'CODE = """\nvoid f(float* x) {\n    int y = z;\n}\n"""\n'

    def test_the_first_error_of_a_cpp_compiler(self):
        message = (
            "C++ compile error\n\nCommand:\ng++ x.cpp\n"
            "/tmp/a/main.cpp: In function 'void f(float*)':\n"
            "/tmp/a/main.cpp:2:13: error: 'z' was not declared in this scope\n"
            "    2 |     int y = z;\n      |             ^\n"
            "/tmp/a/main.cpp:9:1: error: another\n"
        )
        fault = fault_of({"type": "CppCompileError", "message": message}, self.SOURCE)
        assert fault.message == "'z' was not declared in this scope"
        assert (fault.line, fault.source_line, fault.frame) == (3, "int y = z;", "main.cpp:2")

    def test_nvcc_s(self):
        message = 'nvcc\n/tmp/cuda.cu(17): error: identifier "tid" is undefined\n'
        fault = fault_of({"type": "RuntimeError", "message": message}, self.SOURCE)
        assert fault.message == 'identifier "tid" is undefined'
        assert (fault.line, fault.frame) == (0, "cuda.cu:17")

    def test_what_mlir_wrote_to_the_log_says_more_than_its_exception(self):
        log = "warning\n/w/candidate_1.py:3:4: error: operand #0 must be ranked tensor\n"
        error = {"type": "RuntimeError", "message": "PassManager::run failed"}
        fault = fault_of(error, self.SOURCE, log)
        assert fault.message == "operand #0 must be ranked tensor"
        assert (fault.line, fault.source_line) == (3, "int y = z;")

    def test_a_log_is_not_believed_about_anything_else(self):
        log = "x.py:1:1: error: forged"
        assert fault_of({"type": "ValueError", "message": "no"}, "x = 1", log).message == "no"


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("first\nsecond", "first"),
        ("", ""),
        ("preamble\nx.cpp:3:1: error: expected ';'\nnote", "x.cpp:3:1: error: expected ';'"),
        ("at 2:8:\ndef k():\n    i\n    ^\nnot a power of 2", "not a power of 2"),
    ],
)
def test_the_line_that_says_most(message, line):
    assert headline(message) == line
