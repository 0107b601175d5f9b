"""TritonBench: the sizes of its tasks, and the answers in its files of JSON lines."""

import json

import pytest
import torch

from adaexplore.core.errors import BadInputError
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.labels import INPUTS_CLONED, NO_INDEPENDENT_TRUTH, set_apart
from adaexplore.problems import load_problem
from adaexplore.problems.benchmarks import benchmark_named
from adaexplore.run.bench.order import BenchOrder, collect
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.store.bench import read_bench

SEPARATOR = "#" * 146
FUNCTION = """
import torch

def scale(x, y, by=1):
    return x * y * by
"""
TIMES = """
import torch
from TritonBench_v1.scale import scale

class performance_metrics(Performance_Metrics):
    def __init__(self, dtype=None, is_backward=False, **kwargs):
        super().__init__("scale", dtype=dtype, is_backward=is_backward, **kwargs)

    def get_input_tensors(self):
        self.input_tensors = []
        for i in range(2, 6):
            size = 2 ** i
            self.input_tensors.append((torch.rand(size), torch.rand(size)))

    def to_cuda(self, case):
        return case[0].cuda(), case[1].cuda()

    def call_op(self, case):
        x, y = case
        return scale(x, y, by=3)
"""
WRITES = TIMES.replace("return scale(x, y, by=3)", "scale(x, out=y)\n        return y")
DESCRIBED = "Multiplies one tensor by\nanother."


class Bench:
    """A channel of TritonBench with one task, `scale`."""

    def __init__(self, folder, channel):
        self.folder = folder
        self._times = folder / "performance_metrics" / f"perf_{channel}"
        self._data = folder / "data" / f"TritonBench_{channel}_v1"
        self._benchmark = benchmark_named(f"tritonbench-{channel.lower()}")
        self._put(self._data / "scale.py", f"{FUNCTION}\n{SEPARATOR}\n\ndef test_scale(): ...\n")
        self.times(TIMES)
        self.table({"file": "scale.py", "difficulty": 4, "description": DESCRIBED})

    def function(self, text):
        self._put(self._data / "scale.py", text)

    def table(self, *rows):
        ending = "jsonl" if self._data.name == "TritonBench_T_v1" else "json"
        self._put(self._data.with_name(f"{self._data.name}.{ending}"), json.dumps(rows))

    def times(self, text):
        self._put(self._times / "golden_metrics" / "scale_perf.py", text)

    def golden(self, *rows, name="scale.json"):
        times = [{"input_size": [], "ms": ms, "GB/s": gbs} for ms, gbs in rows]
        self._put(self._times / "golden_results" / name, json.dumps(times))

    def problem(self):
        [task] = self._benchmark.tasks(self.folder)
        self._put(self.folder / "out" / task.name, task.text)
        return load_problem(self.folder / "out" / task.name, device="cpu", language="cpp")

    def timed_elements(self):
        problem = self.problem()
        workload = next(each for each in problem.workloads if each.timed)
        inputs = Instance.of(problem, self.folder).inputs(0, workload)
        return inputs.args[0].numel()

    def answers(self, *rows):
        file = self._put(self.folder / "model.jsonl", "".join(json.dumps(r) + "\n" for r in rows))
        return self._benchmark.answers(file, self.folder)

    def _put(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@pytest.fixture
def t(tmp_path):
    return Bench(tmp_path, "T")


@pytest.fixture
def g(tmp_path):
    return Bench(tmp_path, "G")


def asked(**row):
    prompt = (
        f"You are an expert.\nFunctional Description: {DESCRIBED}\n"
        "Wrapper Entry Information: def scale(x, y, by=1)"
    )
    return {"instruction": prompt, "predict": FUNCTION, "label": "", **row}


SMALL, LARGE, SLOW = (0.01, 10), (1.0, 400), (9.0, 10)


@pytest.mark.parametrize(
    ("golden", "elements"),
    [
        ((SMALL, SMALL, (0.1, 100), LARGE), 16),
        ((SMALL, SMALL, (0.1, 100), SLOW), 16),
        ((LARGE, LARGE, SLOW, SLOW), 4),
        ((SMALL, SMALL, SMALL, SMALL), 4),
        ((SMALL, (0.1, 100)), 8),
        ((), 32),
    ],
    ids=["memory", "time", "none fits", "no growth", "the largest failed", "no times"],
)
def test_the_timed_size_is_the_largest_that_their_times_show_to_fit(t, golden, elements):
    t.golden(*golden)
    assert t.timed_elements() == elements


def test_times_are_found_in_a_file_with_another_ending(t):
    t.golden(SMALL, (0.1, 100), SLOW, SLOW, name="scale.py.json")
    assert t.timed_elements() == 8


def test_the_smallest_size_must_be_right_as_well(t):
    problem = t.problem()
    assert [workload.timed for workload in problem.workloads] == [True, False]
    inputs = Instance.of(problem, t.folder).inputs(0, problem.workloads[1])
    assert inputs.args[0].numel() == 4


def test_a_task_without_a_row_in_the_table_has_a_category(t):
    t.table({"file": "other.py", "difficulty": 1, "description": "Other."})
    [task] = benchmark_named("tritonbench-t").tasks(t.folder)
    assert task.category == "difficulty unknown"


def test_a_problem_whose_reference_is_a_kernel_is_set_apart(g):
    labels = dict(g.problem().labels)
    assert NO_INDEPENDENT_TRUTH in labels
    assert set_apart([NO_INDEPENDENT_TRUTH])


def test_an_output_that_a_kernel_writes_into_is_cloned(g):
    g.function("import torch\n\ndef scale(x, out):\n    out.copy_(x)\n")
    g.times(WRITES)
    problem = g.problem()
    instance = Instance.of(problem, g.folder)
    inputs = instance.inputs(0, problem.workloads[0])
    before = inputs.args[1].clone()
    [(_, output)] = instance(inputs)
    assert torch.equal(output, inputs.args[0])
    assert torch.equal(inputs.args[1], before)
    assert INPUTS_CLONED in dict(problem.labels)


@pytest.mark.parametrize("called", ["scale.apply(x, y)", "scale(x, y)"])
def test_a_kernel_may_be_called_through_a_class(g, called):
    g.function(
        "import torch\n\nclass Scale:\n    def __call__(self, x, y):\n        return x * y\n\n"
        "    apply = __call__\n\nscale = Scale()\n"
    )
    g.times(TIMES.replace("scale(x, y, by=3)", called))
    problem = g.problem()
    instance = Instance.of(problem, g.folder)
    inputs = instance.inputs(0, problem.workloads[0])
    assert torch.equal(instance(inputs)[0][1], inputs.args[0] * inputs.args[1])


def test_an_answer_is_called_as_the_task_calls_its_function(t):
    [answer] = t.answers(asked(predict="def scale(x, y, by=1):\n    return x - y - by\n"))
    instance = Instance.load(
        answer.source, "ModelNew", device="cpu", seed=0, mode="as-built", folder=t.folder
    )
    x, y = torch.rand(3), torch.rand(3)
    assert torch.equal(instance.model(x, y), x - y - 3)
    assert (answer.key, answer.place, answer.adapted) == ("scale", "model.jsonl#1", True)


def test_an_answer_without_the_function_gets_no_module(t):
    [answer] = t.answers(asked(predict="def other(x, y, by=1):\n    return x\n"))
    assert "ModelNew" not in answer.source


@pytest.mark.parametrize(
    "predict",
    [
        FUNCTION,
        f"Here it is:\n```python\n{FUNCTION}```\nDone.<|im_end|>",
        f"First\n```python\nprint(1)\n```\nthen\n```\n{FUNCTION}\n```\nand\n```python\nscale(1)\n```",
        f"It was cut off:\n```python\n{FUNCTION}",
    ],
    ids=["plain", "fenced", "several", "open"],
)
def test_the_code_is_found_in_what_was_predicted(t, predict):
    [answer] = t.answers(asked(predict=predict))
    assert "def scale(x, y, by=1)" in answer.source
    assert "class ModelNew" in answer.source
    assert "```" not in answer.source


def test_a_prompt_that_quotes_other_tasks_belongs_to_the_last(t):
    t.table(
        {"file": "scale.py", "difficulty": 4, "description": DESCRIBED},
        {"file": "other.py", "difficulty": 1, "description": "Adds."},
    )
    own = asked()["instruction"]
    quoted = f"Functional Description: Adds.\nWrapper Entry Information: def add()\n{own}"
    assert [a.key for a in t.answers({"prompt": quoted, "predict": FUNCTION})] == ["scale"]


def test_the_gold_answer_of_a_line_tells_its_task(g):
    gold = "@triton.jit\ndef scale_kernel(): ..."
    rows = [{"file": f"{n}.py", "difficulty": 1, "comp_instru": "Same."} for n in ("scale", "b")]
    g.table({**rows[0], "output": gold}, {**rows[1], "output": "other"})
    unlike, like = {"prompt": "Same.", "predict": FUNCTION}, {"label": f"\n{gold}\n"}
    assert g.answers(unlike) == []
    assert [answer.key for answer in g.answers({**unlike, **like})] == ["scale"]


def test_lines_of_another_form_are_no_answers(t):
    assert t.answers({"text": "Functional Description: ..."}, ["a list"]) == []


def test_answers_need_the_data(t):
    benchmark = benchmark_named("tritonbench-t")
    t.answers(asked())
    with pytest.raises(BadInputError, match="by --data"):
        benchmark.answers(t.folder / "model.jsonl", None)


def test_a_file_of_answers_that_is_not_there_is_refused(t):
    with pytest.raises(BadInputError, match="no such file"):
        benchmark_named("tritonbench-t").answers(t.folder / "lost.jsonl", t.folder)


def test_an_answer_brings_their_test_of_it_and_their_time(t):
    t.golden((0.01, 10), (0.5, 100), SLOW, SLOW)
    [answer] = t.answers(asked(predict=f"Code:\n```python\n{FUNCTION}<|EOT|>"))
    code, _, test = answer.test.script.partition(SEPARATOR)
    assert code == f"\n{FUNCTION}\n"
    assert test.strip() == "def test_scale(): ..."
    assert answer.test.gold == f"{FUNCTION}\n{SEPARATOR}\n\ndef test_scale(): ...\n"
    assert answer.test.golden_us == 500.0


def test_their_scripts_take_what_was_predicted_for_a_kernel_as_it_is(g):
    predict = f"```python\n{FUNCTION}```"
    [answer] = g.answers(asked(predict=predict))
    assert answer.test.script.startswith(f"{predict}\n{SEPARATOR}")


def test_lines_whose_task_is_no_problem_are_answers_without_a_test(t):
    t.table(
        {"file": "scale.py", "difficulty": 4, "description": DESCRIBED},
        {"file": "other.py", "difficulty": 1, "description": "Adds."},
    )
    lines = [{"prompt": text, "predict": "x"} for text in ("Adds.", "Unknown.")]
    found = {answer.key: answer for answer in t.answers(*lines, asked())}
    assert list(found) == ["?", "other", "scale"]
    assert [one.source for one in found.values()][:2] == ["x", "x"]
    assert [bool(one.test) for one in found.values()] == [False, False, True]


def test_a_collected_folder_holds_the_programs_of_their_test(t):
    t.golden(SMALL, SMALL, SLOW, SLOW)
    [answer] = t.answers(asked())
    order = BenchOrder(
        benchmark_named("tritonbench-t"), {"model": t.folder / "model.jsonl"}, t.folder
    )
    collect(order, t.folder / "run", Config(), "adaexplore bench")
    [entry] = read_bench(t.folder / "run").entries
    assert (t.folder / "run" / entry.script).read_text() == answer.test.script
    assert (t.folder / "run" / entry.gold).read_text() == answer.test.gold
    assert entry.golden_us == 10.0
