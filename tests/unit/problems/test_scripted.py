"""Problems written from a PyTorch function and the script that times it."""

import ast
import textwrap

import pytest
import torch

from adaexplore.core.verdict.labels import INPUTS_CLONED, UNIFORM_INPUTS, WITHOUT_DROPOUT
from adaexplore.problems.benchmarks.scripted.answer import (
    SEPARATOR,
    implementation,
    rows_in,
    with_module,
    without_fences,
)
from adaexplore.problems.benchmarks.scripted.arithmetic import UnknownError, value_of
from adaexplore.problems.benchmarks.scripted.function import UnusableError
from adaexplore.problems.benchmarks.scripted.text import problem_text

FUNCTION = "import torch\n\ndef scaled(x, y, factor=1.0):\n    return factor * x + y\n"
TWO = """
    for i in range(2, 30):
        size = 2 ** i
        x = torch.randn(size, dtype=self.dtype)
        y = torch.randn(size, dtype=self.dtype)
        self.input_tensors.append((x, y))
"""
CALL = "x, y = pair\nreturn scaled(x, y, factor=2.0)"


def script(draws=TWO, call=CALL, init="", signature="dtype=None", moves="return case"):
    """A script in the benchmark's form, with these bodies of its methods."""
    return "\n".join(
        [
            "import torch, sys",
            "import torch.nn.functional as F",
            "from bench.scaled import scaled",
            "class performance_metrics(Performance_Metrics):",
            f"    def __init__(self, {signature}, is_backward=False, **kwargs):",
            "        super().__init__('scaled', dtype=dtype, **kwargs)",
            textwrap.indent(textwrap.dedent(init), " " * 8),
            "    def get_input_tensors(self):",
            "        self.input_tensors = []",
            textwrap.indent(textwrap.dedent(draws), " " * 8),
            "    def to_cuda(self, case):",
            textwrap.indent(moves, " " * 8),
            "    def call_op(self, pair):",
            textwrap.indent(textwrap.dedent(call), " " * 8),
        ]
    )


def run(text):
    """The names that a problem's text binds."""
    names = {}
    exec(text, names)
    return names


def output(written, size=None):
    names = run(written.text)
    torch.manual_seed(0)
    inputs = names["get_inputs"](*([] if size is None else [size]))
    return inputs, names["Model"]()(*inputs)


def test_the_model_calls_the_function_as_the_script_does():
    (x, y), found = output(problem_text(FUNCTION, script(), most=64))
    assert x.shape == y.shape == (32,)  # 2 * 32 elements
    assert torch.equal(found, 2 * x + y)


def test_the_first_size_must_be_right_too_and_is_not_timed():
    written = problem_text(FUNCTION, script(), most=64)
    timed, small = written.workloads
    assert timed.timed
    assert not small.timed
    names = run(written.text)
    assert eval(timed.draw, names)[0].shape == (32,)
    assert eval(small.draw, names)[0].shape == (4,)


def test_a_script_whose_first_size_is_too_large_has_that_size_alone():
    written = problem_text(FUNCTION, script(), most=1)
    assert len(written.workloads) == 1
    assert output(written)[0][0].shape == (4,)


def test_a_size_whose_call_takes_long_is_not_timed():
    times = [0.1, 0.2, 99.0, 0.4]
    for most, wanted in ((16, 8), (32, 8), (64, 32)):  # sizes 4, 8, 16 (slow), 32
        assert output(problem_text(FUNCTION, script(), most=most, times=times))[0][0].numel() == (
            wanted
        )


def test_sizes_may_be_tuples_in_a_list():
    draws = """
        configs = [(2, 3), (4, 5), (60, 70)]
        for rows, columns in configs:
            self.input_tensors.append((torch.rand(rows, columns), torch.rand(columns)))
    """
    (x, y), _ = output(problem_text(FUNCTION, script(draws), most=30))
    assert (x.shape, y.shape) == ((4, 5), (5,))


def test_sizes_may_be_collected_in_a_loop_before():
    draws = """
        shapes = []
        for i in range(1, 6):
            shapes.append(((2 ** i, 3), i))
        for shape, columns in shapes:
            x = torch.randn(*shape)
            self.input_tensors.append((x, torch.randn(shape[1])))
    """
    written = problem_text(FUNCTION, script(draws), most=30)
    (x, _), _ = output(written)
    assert x.shape == (8, 3)
    assert "append" not in written.text


def test_what_the_script_counts_and_prints_is_no_part_of_it():
    draws = """
        for i in range(2, 5):
            print(i)
            x = torch.randn(i)
            y = torch.randn(i)
            if i > 100:
                break
            mask_count = (x > 0).sum().item()
            self.output_sizes.append(mask_count)
            self.input_tensors.append((x, y, mask_count))
    """
    written = problem_text(FUNCTION, script(draws, "x, y, _ = pair\nreturn scaled(x, y)"))
    assert len(output(written)[0]) == 2
    for gone in ("print", "mask_count", "output_sizes", "break"):
        assert gone not in written.text


def test_literals_of_a_case_become_part_of_the_call():
    draws = """
        for i in range(2, 5):
            factor = 3.0
            self.input_tensors.append((torch.randn(i), torch.randn(i), factor))
    """
    for call in ("return scaled(*pair)", "return scaled(pair[0], pair[1], pair[2])"):
        written = problem_text(FUNCTION, script(draws, call))
        (x, y), found = output(written)
        assert torch.equal(found, 3 * x + y)
        assert "scaled(input0, input1, 3.0)" in written.text


def test_a_lone_input_is_no_tuple():
    draws = "for i in range(2, 5):\n    self.input_tensors.append(torch.randn(2, i))"
    written = problem_text(
        "import torch\ndef twice(x):\n    return 2 * x\n", script(draws, "return twice(pair)")
    )
    [x], found = output(written)
    assert torch.equal(found, 2 * x)


def test_a_list_of_tensors_stays_one_input():
    function = "import torch\ndef joined(parts, by):\n    return torch.hstack(parts) / by\n"
    draws = """
        for i in range(2, 5):
            parts = [torch.randn(i), torch.randn(i)]
            self.input_tensors.append((parts, 2.0))
    """
    written = problem_text(function, script(draws, "parts, by = pair\nreturn joined(parts, by)"))
    [parts], found = output(written)
    assert torch.equal(found, torch.hstack(parts) / 2.0)


@pytest.mark.parametrize(
    ("signature", "init", "wanted"),
    [
        ("dtype=None", "", torch.float32),
        ("dtype=torch.float16", "", torch.float16),
        ("dtype=None", "if dtype is None:\n    self.dtype = torch.float64", torch.float64),
        ("dtype=None", "self.dtype = dtype if dtype is not None else torch.float64", torch.float64),
        ("dtype=None", "self.dtype = dtype or torch.bfloat16", torch.bfloat16),
    ],
)
def test_the_scripts_settings_stand_where_they_are_read(signature, init, wanted):
    written = problem_text(FUNCTION, script(init=init, signature=signature), most=64)
    (x, _), _ = output(written)
    assert x.dtype is wanted
    assert "self.dtype" not in written.text


def test_settings_that_are_computed_keep_their_constructor():
    init = "self.factor = 1.0\nfor step in (2, 3):\n    self.factor *= step"
    call = "x, y = pair\nreturn scaled(x, y, factor=self.factor)"
    (x, y), found = output(problem_text(FUNCTION, script(init=init, call=call), most=64))
    assert torch.equal(found, 6 * x + y)


def test_options_of_the_script_take_their_defaults():
    call = "x, y = pair\nreturn scaled(x, y, factor=self.kwargs.get('factor', 4.0))"
    (x, y), found = output(problem_text(FUNCTION, script(call=call), most=64))
    assert torch.equal(found, 4 * x + y)


def test_inputs_that_a_script_makes_when_it_moves_them_are_made_anywhere():
    draws = "for i in range(2, 20):\n    self.input_tensors.append(2 ** i)"
    moves = (
        "size = case\nx = torch.randn(size, device='cuda')\n"
        "return (x, torch.zeros(size, device='cuda'))"
    )
    (x, y), _ = output(problem_text(FUNCTION, script(draws, moves=moves), most=64))
    assert x.shape == y.shape == (32,)
    assert not y.any()


@pytest.mark.parametrize(
    "body",
    [
        "x.mul_(2).add_(y)\n    return x",
        "x += y\n    return x",
        "x[0] = y[0]\n    return x",
    ],
)
def test_inputs_that_the_function_writes_to_are_cloned(body):
    written = problem_text(f"import torch\ndef scaled(x, y, factor=1):\n    {body}\n", script())
    names = run(written.text)
    x, y = torch.ones(3), torch.ones(3)
    names["Model"]()(x, y)
    assert torch.equal(x, torch.ones(3))
    assert "clones of x" in written.labels[INPUTS_CLONED]


@pytest.mark.parametrize(("default", "is_written"), [("False", False), ("True", True)])
def test_what_an_option_switches_off_is_not_written(default, is_written):
    body = "    if inplace:\n        x.add_(y)\n    return x + y\n"
    function = f"import torch\ndef scaled(x, y, factor=1, inplace={default}):\n{body}"
    assert (INPUTS_CLONED in problem_text(function, script()).labels) == is_written
    call = CALL.replace("factor=2.0", f"inplace={default}")
    assert (INPUTS_CLONED in problem_text(function, script(call=call)).labels) == is_written


def test_a_function_that_writes_to_a_copy_needs_no_clone():
    body = "x = x * 1\n    x.add_(y)\n    z = y.abs()\n    z.add_(x)\n    return z"
    written = problem_text(f"import torch\ndef scaled(x, y, factor=1):\n    {body}\n", script())
    assert INPUTS_CLONED not in written.labels


@pytest.mark.parametrize(
    ("parameters", "dropout", "switch"),
    [
        ("p=0.5, training=True", "p=p, training=training", "p=0.0"),
        ("p=0.5, training=True", "0.5, training", "training=False"),
        ("dropout_p=0.1", "p=dropout_p, training=True", "dropout_p=0.0"),
    ],
)
def test_dropout_is_turned_off(parameters, dropout, switch):
    function = (
        f"import torch\nimport torch.nn.functional as F\n"
        f"def scaled(x, y, factor=1, {parameters}):\n    return F.dropout(x + y, {dropout})\n"
    )
    written = problem_text(function, script(), most=64)
    (x, y), found = output(written)
    assert torch.equal(found, x + y)
    assert switch in written.labels[WITHOUT_DROPOUT]


@pytest.mark.parametrize(
    ("draws", "is_uniform"),
    [
        ("torch.rand(i)", True),
        ("torch.rand(i) + 1e-6", True),
        ("torch.rand(i) * 2 - 1", False),
        ("torch.randn(i)", False),
    ],
)
def test_inputs_between_zero_and_one_are_labelled(draws, is_uniform):
    body = f"for i in range(2, 5):\n    self.input_tensors.append(({draws}, {draws}))"
    written = problem_text(FUNCTION, script(body))
    assert (UNIFORM_INPUTS in written.labels) == is_uniform


@pytest.mark.parametrize(
    ("function", "given", "why"),
    [
        ("def scaled(x, y, factor=1):\n    return x + torch.rand_like(y)", {}, "rand_like"),
        ("def scaled(x, y, factor=1):\n    return F.dropout(x)", {}, "dropout"),
        ("def other(x):\n    return x", {}, "calls no function that its file defines"),
        ("def scaled(x, y:\n    return x", {}, "is no Python"),
        (FUNCTION, {"call": "x, y = pair\nscaled(x, y)"}, "returns nothing"),
        (
            FUNCTION,
            {"draws": "for i in range(2):\n    self.input_tensors.append((i, 2))"},
            "no tensor",
        ),
        (FUNCTION, {"draws": "pass"}, "appends no case"),
        (
            FUNCTION,
            {"draws": TWO.replace("range(2, 30)", "range(2, total())")},
            "cannot be read: range(2, total())",
        ),
        (
            FUNCTION,
            {"draws": TWO.replace("torch.randn(size, dtype", "torch.randn(size, width, dtype")},
            "its script uses width, which nothing defines",
        ),
        (
            FUNCTION.replace("return factor", "x.backward()\n    return factor"),
            {},
            "its reference trains",
        ),
    ],
)
def test_what_makes_no_problem_has_a_reason(function, given, why):
    with pytest.raises(UnusableError) as caught:
        problem_text(function, script(**given))
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_script_without_the_three_methods_is_refused():
    with pytest.raises(UnusableError, match="no class with get_input_tensors"):
        problem_text(FUNCTION, "import torch\nclass performance_metrics: ...\n")


@pytest.mark.parametrize("text", ["4 ** 100000000", "5000 ** 9", "2 ** 39 * 4"])
def test_numbers_that_would_busy_this_process_are_not_computed(text):
    with pytest.raises(UnknownError, match="a large"):
        value_of(ast.parse(text, mode="eval").body, {})


def test_random_integers_count_by_their_size():
    draws = """
        for i in range(2, 30):
            self.input_tensors.append((torch.randint(0, 7, (2 ** i,)), torch.zeros(1)))
    """
    (x, _), _ = output(problem_text(FUNCTION, script(draws), most=33))
    assert x.shape == (32,)


@pytest.mark.parametrize("name", ["scaled", "Scaled", "kernel_function"])
def test_an_answer_gets_the_module_of_its_task(name):
    task = problem_text(FUNCTION, script(), most=64).text
    answer = f"import torch\ndef {name}(x, y, factor=1):\n    return 10 * factor * x + y\n"
    source = with_module(answer, task, ("scaled", "Scaled"))
    x, y = torch.ones(3), torch.ones(3)
    assert torch.equal(run(source)["ModelNew"]()(x, y), 20 * x + y)


def test_an_answer_without_the_function_stays_as_it_is():
    task = problem_text(FUNCTION, script(), most=64).text
    for answer in ("x = 1\n", "def broken(:\n"):
        assert with_module(answer, task, ("scaled",)) == answer


def test_the_test_below_a_function_is_no_part_of_an_answer():
    assert implementation(f"{FUNCTION}\n{SEPARATOR}\ndef test_scaled(): ...\n") == FUNCTION


@pytest.mark.parametrize(
    "reply",
    [
        "x = 1",
        "```python\nx = 1\n```\nSo it is.",
        "Here:\n```python\nx = 1\n```",
        "x = 1<|im_end|>",
    ],
)
def test_the_code_of_a_reply_is_without_fences(reply):
    assert without_fences(reply) == "x = 1\n"


def test_rows_are_read_from_lines_and_from_an_array():
    assert rows_in('{"a": 1}\n{"a": 2}\n') == rows_in('[{"a": 1}, {"a": 2}]')
    assert rows_in("no json") == rows_in("[1, 2]") == []


def test_the_text_of_a_problem_is_python_that_names_no_script():
    text = problem_text(FUNCTION, script()).text
    ast.parse(text)
    assert "bench" not in text.replace("benchmark", "")
