import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.errors import BadProblemError
from adaexplore.problems import kernelbench

GOOD = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x.relu()

def get_inputs():
    return [torch.rand(4)]
"""


def load(path):
    return kernelbench.load(path, device="cpu", language="cpp")


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "problem.py"
    file.write_text(text, encoding="utf-8")
    return file


def complaint(path) -> str:
    with pytest.raises(BadProblemError) as caught:
        load(path)
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    return text


def test_a_good_file_becomes_a_problem_named_after_it(tmp_path):
    file = write(tmp_path, GOOD)
    problem = kernelbench.load(
        file, device="cpu", language="cpp", precision="half", seed=7, mode="eval"
    )
    assert (problem.name, problem.source) == ("problem", GOOD)
    assert (problem.device, problem.language) == ("cpu", "cpp")
    assert (problem.precision, problem.seed, problem.mode) == ("half", 7, "eval")


def test_a_path_may_be_text_and_a_byte_order_mark_is_dropped(tmp_path):
    file = tmp_path / "bom.py"
    file.write_text(GOOD, encoding="utf-8-sig")
    assert load(str(file)).source == GOOD


@pytest.mark.parametrize(
    "head",
    [
        "class Model: pass",
        "Model = object",
        "Model: type = object",
        "from somewhere import Model",
        "from somewhere import Net as Model",
        "from somewhere import *",
        "Net, Model = object, object",
        "if True:\n    class Model: pass",
        "try:\n    from a import Model\nexcept ImportError:\n    Model = None",
    ],
)
def test_model_may_be_bound_in_any_way(tmp_path, head):
    load(write(tmp_path, f"{head}\nget_inputs = list\n"))


@pytest.mark.parametrize(
    "head", ["def f():\n    class Model: pass", "Model: type", "x = 'class Model'", "Model.x = 1"]
)
def test_what_does_not_bind_model_at_module_level_does_not_count(tmp_path, head):
    assert "defines no Model" in complaint(write(tmp_path, f"{head}\nget_inputs = list\n"))


def test_missing_file(tmp_path):
    assert "no such file" in complaint(tmp_path / "nowhere.py")


def test_directory(tmp_path):
    assert "is a directory" in complaint(tmp_path)


def test_no_regular_file(tmp_path):
    pipe, large = tmp_path / "pipe.py", tmp_path / "large.py"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate((16 << 20) + 1)
    assert "is no regular file; give a Python file" in complaint(pipe)
    assert "is larger than 16 MiB" in complaint(large)
    assert "is empty" in complaint(Path("/dev/null"))


def test_path_through_a_file(tmp_path):
    assert "cannot be read" in complaint(write(tmp_path, GOOD) / "problem.py")


def test_not_utf8_names_the_line_and_the_byte(tmp_path):
    file = tmp_path / "latin.py"
    file.write_bytes(b"import torch\n# caf\xe9\n")
    text = complaint(file)
    assert "line 2" in text
    assert "0xe9" in text


@pytest.mark.parametrize("text", ["", "  \n\n"])
def test_empty(tmp_path, text):
    assert "is empty" in complaint(write(tmp_path, text))


def test_syntax_error_names_line_and_column(tmp_path):
    text = complaint(write(tmp_path, "import torch\nclass Model(:\n"))
    assert "line 2, column 13" in text


def test_what_parses_but_cannot_compile_is_a_syntax_error(tmp_path):
    text = complaint(write(tmp_path, GOOD + "\nreturn 1\n"))
    assert "line 12" in text
    assert "outside function" in text


def test_no_model_names_the_classes_there_are(tmp_path):
    text = complaint(write(tmp_path, "\nclass Net: pass\ndef get_inputs(): return []\n"))
    assert "Net at line 2" in text


def test_a_near_name_is_named_first(tmp_path):
    text = complaint(write(tmp_path, "class Helper: pass\nclass model: pass\n"))
    assert "model at line 2" in text
    assert "Helper" not in text


def test_no_get_inputs_names_the_near_function(tmp_path):
    text = complaint(write(tmp_path, "class Model: pass\ndef get_input(): return []\n"))
    assert "defines no get_inputs" in text
    assert "get_input at line 2" in text


@pytest.mark.parametrize("text", ["x\0y", "(" * 3000 + ")" * 3000, "-" * 100_000 + "1"])
def test_text_that_breaks_the_parser_is_refused(tmp_path, text):
    complaint(write(tmp_path, text))


FRAGMENTS = (
    'class |Model|def |get_inputs|return |if |import |from |*|1|=|(|)|:|.|#|é|\'|"""'
    "|\n|    |\t|\r|\x0c|\0|\\"
)
python_like = st.lists(st.sampled_from(FRAGMENTS.split("|"))).map("".join)


@given(st.text() | python_like)
def test_any_text_is_a_problem_or_a_bad_problem(tmp_path_factory, text):
    file = tmp_path_factory.getbasetemp() / "any.py"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    with contextlib.suppress(BadProblemError):
        source = load(file).source
        assert ("Model" in source and "get_inputs" in source) or "*" in source


@given(st.binary())
def test_any_bytes_are_a_problem_or_a_bad_problem(tmp_path_factory, content):
    file = tmp_path_factory.getbasetemp() / "bytes.py"
    file.write_bytes(content)
    with pytest.raises(BadProblemError):
        load(file)


def test_loading_does_not_import_torch(tmp_path):
    file = write(tmp_path, GOOD)
    code = (
        "import sys; from adaexplore.problems.kernelbench import load; "
        f"load({str(file)!r}, device='cpu', language='cpp'); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
