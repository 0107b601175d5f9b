"""Tasks of KernelBench-X and answers to them, from small folders in its format."""

import json

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Likeness
from adaexplore.core.verdict.labels import FLOAT_WORK
from adaexplore.problems import load_problem
from adaexplore.problems.benchmarks import benchmark_named

SEPARATOR = "#" * 146
SCRIPT = """
import torch
from kernelbenchx.{folder}.{name} import {name}

class performance_metrics(Performance_Metrics):
    def __init__(self, dtype=torch.float32, is_backward=False, **kwargs):
        super().__init__("{name}", dtype=dtype, is_backward=is_backward, **kwargs)

    def get_input_tensors(self):
        self.input_tensors = []
        for i in range(2, 5):
            self.input_tensors.append((torch.randn(i, i), torch.randn(i, i)))

    def to_cuda(self, pair):
        return tuple(x.cuda() for x in pair)

    def call_op(self, pair):
        return {name}(pair[0], pair[1])
"""
MATMUL = '"""Quantize to torch.int8."""\n    return torch.matmul(x, y)'
ROUNDED = "return torch.matmul(x.to(torch.int8).float(), y)"


@pytest.fixture
def benchmark():
    return benchmark_named("kernelbenchx")


@pytest.fixture
def checkout(tmp_path):
    """Make a checkout of tasks, each the body of a function of two matrices."""

    def make(**bodies):
        rows = []
        for key, body in bodies.items():
            folder, name = key.split("__")
            function = f"import torch\n\ndef {name}(x, y):\n    {body}\n\n{SEPARATOR}\n"
            for path, text in (
                (f"data/kernelbenchx/{folder}/{name}.py", function),
                (
                    f"metrics/golden_metrics/{name}_perf.py",
                    SCRIPT.format(folder=folder, name=name),
                ),
            ):
                file = tmp_path / "data" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            rows.append({"file": f"{folder}/{name}.py", "description": f"Does {name}\nof two."})
        (tmp_path / "data/data/kernelbenchx_v1.json").write_text(json.dumps(rows))
        return tmp_path / "data"

    return make


@pytest.fixture
def answered(tmp_path):
    """Write a file of answers."""

    def put(name, text):
        file = tmp_path / "answers" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return tmp_path / "answers"

    return put


def test_a_quantised_task_whose_reference_is_not_says_so(benchmark, checkout, tmp_path):
    data = checkout(Quantization__matmul=MATMUL, Quantization__rounded=ROUNDED, Math__mm=MATMUL)
    labels = {}
    for task in benchmark.tasks(data):
        (tmp_path / task.name).write_text(task.text)
        problem = load_problem(tmp_path / task.name, device="cpu", language="cpp")
        labels[task.key] = [name for name, _ in problem.labels]
    assert labels == {
        "Quantization/matmul": [FLOAT_WORK],
        "Quantization/rounded": [],
        "Math/mm": [],
    }


def test_thresholds_are_asked_beside_our_own_bounds(benchmark, checkout, tmp_path):
    data = checkout(Quantization__mm="return x @ y", Math__mm="return x @ y")
    table = data / "data/kernelbenchx_v1.json"
    rows = json.loads(table.read_text())
    rows[0]["precision_thresholds"] = {"cosine_sim": 0.9, "rmse": 0.2}
    table.write_text(json.dumps(rows))
    found = {}
    for task in benchmark.tasks(data):
        (tmp_path / task.name).write_text(task.text)
        problem = load_problem(tmp_path / task.name, device="cpu", language="cpp")
        found[task.key] = problem.checks.likenesses
    assert found == {
        "Quantization/mm": (Likeness(0.9, 0.01, 0.2, "KernelBench-X"),),
        "Math/mm": (),
    }


def test_sizes_are_chosen_by_the_times_of_the_benchmark(benchmark, checkout):
    data = checkout(Math__mm="return x @ y")
    times = data / "metrics/golden_results/h800/mm.json"
    times.parent.mkdir(parents=True)
    times.write_text(json.dumps([{"ms": 0.1}, {"ms": 0.2}, {"ms": 9.0}]))  # 2, 3 and 4 rows
    [task] = benchmark.tasks(data)
    assert "def get_inputs(i=3):" in task.text


def test_sizes_are_limited_where_larger_outputs_are_infinite(benchmark, checkout):
    data = checkout(LinearAlgebra__det="return x @ y", Math__mm="return x @ y")
    for script in (data / "metrics/golden_metrics").iterdir():
        script.write_text(script.read_text().replace("range(2, 5)", "(2, 20, 2000)"))
    sizes = {task.key: task.text.partition("get_inputs(")[2][:6] for task in benchmark.tasks(data)}
    assert sizes == {"LinearAlgebra/det": "i=20):", "Math/mm": "i=2000"}


def test_a_task_without_a_finite_output_is_left_out(benchmark, checkout):
    data = checkout(MatrixMultiply__matrix_multiply_symmetric="return x @ y")
    [one] = benchmark.excluded(data)
    assert "overflows float16" in one.reason


def test_an_answer_is_bound_to_its_task(benchmark, checkout, answered):
    data = checkout(Math__mm="return x @ y")
    folder = answered("mm.py", f"def mm(x, y):\n    return (x, y)\n{SEPARATOR}\ntest = mm(1, 2)\n")
    [answer] = benchmark.answers(folder, data)
    names = {}
    exec(answer.source, names)
    assert names["ModelNew"]()(3, 4) == (3, 4)
    assert (answer.key, answer.place, "test" in names) == ("Math/mm", "mm.py", False)


def test_rows_name_their_task_by_file_or_by_instruction(benchmark, checkout, answered):
    data = checkout(Math__mm="return x @ y", Math__add="return x + y")
    rows = [
        {"file": "mm.py", "predict": "```python\ndef mm(x, y): ...\n```"},
        {"file": "Math/add.py", "predict": "def add(x, y): ..."},
        {
            "instruction": "Functional Description: Does mmof two.\nWrapper Entry Information: mm",
            "predict": "def kernel_function(x, y): ...",
        },
        {"instruction": "Do something.", "predict": "def mm(x, y): ..."},
        {"file": "unknown.py", "predict": "def unknown(): ..."},
    ]
    folder = answered("some.jsonl", "\n".join(map(json.dumps, rows)))
    found = [(answer.key, answer.place) for answer in benchmark.answers(folder, data)]
    assert found == [
        ("Math/add", "some.jsonl#2"),
        ("Math/mm", "some.jsonl#1"),
        ("Math/mm", "some.jsonl#3"),
    ]
    file = folder / "some.jsonl"
    assert [a.place for a in benchmark.answers(file, data)] == [place for _, place in found]


def test_the_records_of_iterations_bring_their_verdicts(benchmark, checkout, answered):
    data = checkout(Math__mm="return x @ y")

    def record(before, after):
        ran = {"call_ok": True, "exe_ok": False, "speedup": None}
        right = {"call_ok": True, "exe_ok": True, "speedup": 1.5}
        return {
            "task_id": "Math/mm.py",
            "before_code": before,
            "before": ran,
            "after_code": after,
            "after": right,
        }

    tested = f"def mm(x, y): 2\n{'#' * 146}\nfrom data_utils import rand_tensor\n"
    rows = [record("def mm(x, y): 1", tested), record("def mm(x, y): 1", "")]
    folder = answered("records.jsonl", "\n".join(map(json.dumps, rows)))
    answers = benchmark.answers(folder, data)
    told = {answer.place.partition("#")[2]: answer.theirs for answer in answers}
    assert {place: (one.said, one.right, one.speedup) for place, one in told.items()} == {
        "1-before": ("wrong", False, None),
        "1-after": ("passed", True, 1.5),
    }
    assert not any("data_utils" in answer.source for answer in answers)


def test_an_answer_to_a_task_that_is_no_problem_stays_as_it_is(benchmark, checkout, answered):
    data = checkout(Random__rand="return torch.rand_like(x)")
    [answer] = benchmark.answers(answered("rand.py", "def rand(x, y): ...\n"), data)
    assert (answer.key, answer.source) == ("Random/rand", "def rand(x, y): ...\n")


def test_answers_without_the_checkout_are_refused(benchmark, answered):
    with pytest.raises(BadInputError, match="--data"):
        benchmark.answers(answered("mm.py", "def mm(x, y): ..."), None)


def test_a_table_of_something_else_is_refused(benchmark, checkout):
    data = checkout(Math__mm="return x @ y")
    for text in ("[]", '[{"name": 1}]', "no json"):
        (data / "data/kernelbenchx_v1.json").write_text(text)
        with pytest.raises(BadInputError, match="is no table of tasks"):
            benchmark.tasks(data)
