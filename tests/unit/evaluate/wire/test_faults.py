import ast
import importlib.util
import sys
import textwrap
from dataclasses import dataclass

import pytest

from adaexplore.core.text.headline import headline
from adaexplore.core.verdict.evaluation import Fault
from adaexplore.evaluate.wire.faults import describe, fault_of
from adaexplore.evaluate.wire.messages import Place, Raised

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
        text = describe(caught.value, tmp_path).traceback
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

    def test_the_line_that_a_text_says_was_being_processed(self, candidate):
        fault = candidate("""
            def kernel(x):
                return x + bias  # traced, never called

            def traced():
                place = f'  File "{kernel.__code__.co_filename}", line 2, in kernel'
                raise RuntimeError(f"The size of x is wrong\\nProcessing:\\n{place}\\n    ^^^")

            traced()
        """).fault()
        assert (fault.message, fault.line, fault.frame) == ("The size of x is wrong", 2, "kernel")

    def test_a_line_that_a_coloured_text_points_at(self, candidate):
        fault = candidate("""
            def kernel(x):
                return x + bias  # traced, never called

            def traced():
                place = f"  \\x1b[94m-->\\x1b[0m {kernel.__code__.co_filename}:2:5"
                raise RuntimeError(f"\\x1b[91merror[NAME]:\\x1b[0m No bias\\n{place}\\n   |")

            try:
                traced()
            except RuntimeError as error:
                raise error from NameError("bias")
        """).fault()
        assert (fault.type, fault.message, fault.line) == (
            "RuntimeError",
            "error[NAME]: No bias",
            2,
        )

    @pytest.mark.parametrize("part", [{"src": "x = 1"}, {"node": ast.parse("x = 1").body[0]}])
    def test_half_of_what_a_compiler_names_is_no_place(self, tmp_path, part):
        error = ValueError("no")
        vars(error).update(part)
        assert describe(error, tmp_path).places == ()

    def test_a_chain_tied_into_a_knot_ends(self, tmp_path):
        error = ValueError("round and round")
        error.__cause__ = error
        assert describe(error, tmp_path).type == "ValueError"

    @pytest.mark.parametrize(
        "places",
        [
            (Place(10**9, "f"),),
            (Place(-1, "f"),),
            (Place(2, "", "def nowhere():\n    pass"),),
            (Place(10**9, "", "def nowhere():\n    pass"),),
        ],
    )
    def test_a_forged_place_is_no_place(self, places):
        error = Raised("ValueError", "no", places=places)
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
        fault = fault_of(Raised("CppCompileError", message), self.SOURCE)
        assert fault.message == "'z' was not declared in this scope"
        assert (fault.line, fault.source_line, fault.frame) == (3, "int y = z;", "main.cpp:2")

    def test_nvcc_s(self):
        message = 'nvcc\n/tmp/cuda.cu(17): error: identifier "tid" is undefined\n'
        fault = fault_of(Raised("RuntimeError", message), self.SOURCE)
        assert fault.message == 'identifier "tid" is undefined'
        assert (fault.line, fault.frame) == (0, "cuda.cu:17")

    def test_a_line_that_occurs_twice_is_told_by_its_neighbours(self, tmp_path):
        kernel = "void {}(float* x) {{\n  int i = threadIdx.x;\n  x[i] = {};\n}}\n"
        code = kernel.format("f", 1) + kernel.format("g", 2)
        file = tmp_path / "extensions" / "k" / "cuda.cu"
        file.parent.mkdir(parents=True)
        file.write_text("#include <torch/types.h>\n" + code)
        error = RuntimeError(f"Error building extension 'k':\n{file}(7): error: no threadIdx\n")
        fault = fault_of(describe(error, tmp_path), f'CODE = """\n{code}"""\n')
        assert (fault.line, fault.frame) == (7, "cuda.cu:7")
        assert fault.source_line == "int i = threadIdx.x;"

    def test_a_macro_is_shown_as_it_was_written(self, tmp_path):
        code = "void f(float* o) {\n  CHECK(cudaMalloc(&p, 4));\n}\n"
        file = tmp_path / "cuda.cu"
        file.write_text(code)
        expanded = "    do { if ((cudaMalloc(&p, 4)) != 0) return; } while (0);\n              ^\n"
        error = RuntimeError(f'{file}(2): error: identifier "p" is undefined\n{expanded}')
        fault = fault_of(describe(error, tmp_path), f'CODE = """\n{code}"""\n')
        assert (fault.line, fault.source_line) == (3, "CHECK(cudaMalloc(&p, 4));")

    def test_an_error_in_a_header_is_placed_where_the_candidate_led_there(self, tmp_path):
        code = "__global__ void k(float* o) {\n  using R = cub::BlockReduce<S, 128>;\n}\n"
        file = tmp_path / "cuda.cu"
        file.write_text(code)
        error = RuntimeError(
            "/usr/local/cuda/include/cub/warp_reduce.cuh(457): error: no instance of plus\n"
            "        output = reduction_op(input, temp);\n          detected during:\n"
            '            instantiation of "_T Reduce(_T) [with T=S]" at line 511\n'
            f'            instantiation of "T Sum(T) [with T=S]" at line 2 of {file}\n'
        )
        fault = fault_of(describe(error, tmp_path), f'CODE = """\n{code}"""\n')
        assert (fault.message, fault.frame) == ("no instance of plus", "warp_reduce.cuh:457")
        assert (fault.line, fault.source_line) == (3, "using R = cub::BlockReduce<S, 128>;")

    def test_so_is_what_a_header_includes_in_vain(self, tmp_path):
        file = tmp_path / "cuda.cu"
        file.write_text("#include <torch/types.h>\n#include <ATen/cuda/CUDAContext.h>\n")
        error = RuntimeError(
            "In file included from /torch/include/ATen/cuda/CUDAContext.h:4,\n"
            f"                 from {file}:2:\n"
            "/torch/include/ATen/cuda/CUDAContextLight.h:10:10: fatal error: cusparse.h: No such\n"
            "   10 | #include <cusparse.h>\n      |          ^~~~~~~~~~~~\n"
        )
        fault = fault_of(describe(error, tmp_path), '"""\n#include <ATen/cuda/CUDAContext.h>\n"""')
        assert (fault.line, fault.frame) == (2, "CUDAContextLight.h:10")
        assert fault.source_line == "#include <ATen/cuda/CUDAContext.h>"

    @pytest.mark.parametrize(
        ("said", "message", "frame"),
        [
            (
                "ptxas error   : Entry function '_Z3bigPf' uses too much shared data (0x27100 "
                "bytes, 0xc000 max)",
                "ptxas: Entry function '_Z3bigPf' uses too much shared data (0x27100 bytes, "
                "0xc000 max)",
                "big",
            ),
            (
                "ptxas fatal   : Unresolved extern function 'big'",
                "ptxas: Unresolved extern function 'big'",
                "big",
            ),
            (
                "ptxas /tmp/wgmma.ptx, line 23; error   : Instruction 'wgmma.fence' not supported "
                "on .target 'sm_90'",
                "ptxas: Instruction 'wgmma.fence' not supported on .target 'sm_90'",
                "",
            ),
            (
                "nvcc fatal   : Unsupported gpu architecture 'compute_999'",
                "nvcc: Unsupported gpu architecture 'compute_999'",
                "",
            ),
            (
                "/usr/bin/ld: main.o: in function `init':\n"
                "/usr/bin/ld: main.cpp:(.text+0x12): undefined reference to `big(float*)'",
                "ld: undefined reference to `big(float*)'",
                "",
            ),
        ],
    )
    def test_assemblers_and_linkers_name_kernels_at_best(self, tmp_path, said, message, frame):
        source = 'CODE = """\n__global__ void big(float* x) {}\nvoid f() { big<<<1, 1>>>(0); }"""\n'
        root = OSError("Command '['ninja', '-v']' returned non-zero exit status 1.")
        error = RuntimeError(f"Error building extension 'k': [1/2] nvcc -c cuda.cu\n{said}\n")
        error.__cause__ = root
        fault = fault_of(describe(error, tmp_path), source)
        assert (fault.type, fault.message, fault.frame) == ("RuntimeError", message, frame)
        assert fault.line == (2 if frame else 0)

    @pytest.mark.parametrize("excerpt", [None, Place(9, kernel="x"), Place(-1, kernel="x")])
    def test_a_forged_excerpt_is_none(self, excerpt):
        error = Raised("E", "x.cu(2): error: no", excerpt=excerpt)
        assert fault_of(error, self.SOURCE) == Fault("E", "no", frame="x.cu:2")

    @pytest.mark.parametrize(("at", "line"), [(1, 2), (2, 3), (3, 4), (4, 0), (0, 0)])
    def test_every_line_of_an_excerpt_is_found_and_none_beyond(self, at, line):
        source = "x = 1\ndef kernel():\n    a = 2\n    b = 3\n"
        places = (Place(at, "", "def kernel():\n    a = 2\n    b = 3"),)
        assert fault_of(Raised("ValueError", "no", places=places), source).line == line

    def test_an_excerpt_of_one_line_quotes_it(self):
        error = Raised("E", "x.cu(2): error: no", excerpt=Place(1, kernel="not in the source;"))
        assert fault_of(error, self.SOURCE).source_line == "not in the source;"

    def test_what_mlir_wrote_to_the_log_says_more_than_its_exception(self):
        log = "warning\n/w/candidate_1.py:3:4: error: operand #0 must be ranked tensor\n"
        error = Raised("RuntimeError", "PassManager::run failed")
        fault = fault_of(error, self.SOURCE, log)
        assert fault.message == "operand #0 must be ranked tensor"
        assert (fault.line, fault.source_line) == (3, "int y = z;")

    @pytest.mark.parametrize(
        ("line", "frame"), [(2, "kernel"), (4, "kernel"), (8, "kernel"), (11, "forward"), (12, "")]
    )
    def test_mlir_s_error_is_in_a_function_whatever_the_candidate_s_file_is_called(
        self, line, frame
    ):
        source = textwrap.dedent("""\
            @jit
            def kernel(
                x_ptr,
                y_ptr,
            ):
                # doubles
                for i in range(4):
                    store(y_ptr + i, 2)

            class ModelNew:
                def forward(self, x): return x
            SIZE = 4
        """)
        log = f"/w/candidate_7db704db41de.py:{line}:0: error: a pass failed\n"
        fault = fault_of(Raised("RuntimeError", "PassManager::run failed"), source, log)
        assert (fault.line, fault.frame) == (line, frame)

    def test_a_log_is_not_believed_about_anything_else(self):
        log = "x.py:1:1: error: forged"
        assert fault_of(Raised("ValueError", "no"), "x = 1", log).message == "no"


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
