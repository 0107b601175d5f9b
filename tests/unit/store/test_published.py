"""Runs and released kernels of the published search, read as runs."""

import json

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.core.verdict.evaluation import Fault
from adaexplore.memory.extract import failures_of
from adaexplore.store import open_run, read_run
from adaexplore.store.published import is_published, published_runs
from published_files import (
    GPU,
    MISMATCH,
    REFERENCE,
    TRITON,
    kernel,
    right,
    write_loop,
    write_released,
    write_step,
    write_tree,
    wrong,
)

OPTIONS = """agent_type: MCTS
model_name: gpt-tiny
total_steps: 5
exploration_weight: 0.7
pool_size: 3
p_strange: 1
reward_alpha: 7
p_large: 0.25
disable_reviewer: true
gpu_ids:
- 0
general_memory_path: null
"""


def steps_of(path):
    with read_run(path) as run:
        return run.store.run(), run.store.nodes()


def shape(nodes):
    return [(n.parent_id, n.step_kind, n.evaluation.status) for n in nodes]


class TestTree:
    @pytest.fixture
    def path(self, tmp_path):
        return write_tree(tmp_path / "outputs" / "2_18", OPTIONS)

    def test_its_steps_are_nodes_under_an_empty_root(self, path):
        record, nodes = steps_of(path)
        assert shape(nodes) == [
            (0, "large", "reported"),
            (1, "small", "compile_error"),
            (1, "small", "wrong_output"),
            (1, "large", "reported"),
            (0, "large", "compile_error"),
        ]
        assert [n.candidate.source for n in nodes] == [kernel(i) for i in range(1, 6)]
        assert nodes[1].proposal.prompt == "change the kernel, please"
        assert {n.proposal.origin for n in nodes} == {"gpt-tiny"}
        assert (record.problem.name, record.problem.source) == ("2_18", REFERENCE)
        assert (record.environment.gpu, record.reported_by) == (GPU, "AdaExplore as published")

    def test_times_are_theirs_and_no_measurement(self, path):
        best = steps_of(path)[1][3].evaluation
        assert best.published.speedup == pytest.approx(2.5)
        assert best.published.time_us == pytest.approx(1200)
        assert "reported 2.50× over eager (1.20 ms) on NVIDIA Imaginary" in best.reason
        assert best.loaded

    def test_settings_that_fit_are_known(self, path):
        config = steps_of(path)[0].config
        assert (config.c, config.p_large, config.pool_size) == (0.7, 0.25, 3)
        assert (config.reviser, config.policy, config.alpha) == (False, "uct", 0.0)  # 7 is no alpha

    @pytest.mark.parametrize(
        ("options", "reply_tokens"),
        [(OPTIONS, 16_384), (f"{OPTIONS}max_completion_tokens: 900\ntemperature: 0.6\n", 900)],
    )
    def test_calls_had_temperature_1_whatever_the_option(self, tmp_path, options, reply_tokens):
        config = steps_of(write_tree(tmp_path / "2_18", options))[0].config
        assert (config.temperature, config.reply_tokens) == (1.0, reply_tokens)
        assert config.steps == 5

    def test_a_failure_is_one_to_learn_from(self, path):
        record, nodes = steps_of(path)
        assert nodes[1].evaluation.feedback == Fault(
            "CompilationError", "module 'triton.language' has no attribute 'log1p'"
        )
        failed = {failure.failed.status for failure in failures_of(record.problem, nodes)}
        assert failed == {"compile_error", "wrong_output"}

    def test_a_node_that_is_logged_twice_is_there_once(self, path):
        log = json.loads((path / "step_4_log.json").read_text())
        write_step(path, 6, 0, "large_step", kernel(6), right(1.0))
        (path / "step_6_log.json").write_text(json.dumps(log))
        assert len(steps_of(path)[1]) == 5

    def test_a_step_whose_parent_is_lost_begins_anew(self, path):
        (path / "step_1_log.json").unlink()
        assert shape(steps_of(path)[1])[0] == (0, "large", "compile_error")

    def test_a_step_without_measurements_was_never_judged(self, path):
        (path / "step_3_metrics.json").unlink()
        assert steps_of(path)[1][2].evaluation.status == "infra_error"

    @pytest.mark.parametrize(
        ("file", "text", "said"),
        [
            ("step_3_log.json", "{", "step_3_log.json is not JSON"),
            ("step_3_log.json", "[]", "step_3_log.json has no node_id"),
            ("step_3_metrics.json", "[]", "step_3_metrics.json: no metrics of a kernel"),
        ],
    )
    def test_a_damaged_file_is_named(self, path, file, text, said):
        (path / file).write_text(text)
        with pytest.raises(BadInputError, match=said):
            read_run(path)

    def test_it_is_read_only(self, path):
        with pytest.raises(BadInputError, match=f"explore PROBLEM --start-from {path}"):
            open_run(path)


@pytest.mark.parametrize(
    ("metrics", "status", "reason"),
    [
        (TRITON, "compile_error", "CompilationError: module 'triton.language' has no"),
        (MISMATCH, "wrong_output", "Output mismatch: largest difference"),
        (wrong(), "wrong_output", "its output is wrong"),
        (wrong(compiled=False), "compile_error", "it did not compile"),
        (wrong(compiled=False, error="Subprocess timeout"), "timeout", "Subprocess timeout"),
        (
            wrong(
                runtime_error_name="builtins.TypeError", runtime_error="...\nTypeError: no BLOCK"
            ),
            "runtime_error",
            "TypeError: no BLOCK",
        ),
        (
            wrong(
                runtime_error_name="torch.OutOfMemoryError",
                runtime_error="torch.OutOfMemoryError: CUDA out of memory",
            ),
            "out_of_memory",
            "OutOfMemoryError: CUDA out of memory",
        ),
    ],
)
def test_failures_have_our_statuses(tmp_path, metrics, status, reason):
    tmp_path.joinpath("2_1").mkdir()
    write_step(tmp_path / "2_1", 1, None, "large_step", kernel(1), metrics)
    evaluation = steps_of(tmp_path / "2_1")[1][0].evaluation
    assert evaluation.status == status
    assert evaluation.reason.startswith(reason)
    assert evaluation.published.why == evaluation.reason


class TestLoops:
    def test_one_chain_of_refinements(self, tmp_path):
        path = tmp_path / "2_7"
        write_loop(path, "proposal_0_1", kernel(1), MISMATCH)
        write_loop(path, "tune_0_2", kernel(2), right(1.25))
        write_loop(path, "tune_0_10", kernel(10), TRITON)
        assert shape(steps_of(path)[1]) == [
            (0, "large", "wrong_output"),
            (1, "small", "reported"),
            (2, "small", "compile_error"),
        ]

    def test_independent_proposals(self, tmp_path):
        path = tmp_path / "2_7"
        for number in (1, 2, 11):
            write_loop(path, f"proposal_{number}", kernel(number), right(float(number)))
        (path / "proposal_2.txt").write_text("write a kernel")
        _, nodes = steps_of(path)
        assert shape(nodes) == [(0, "large", "reported")] * 3
        assert [n.evaluation.published.speedup for n in nodes] == pytest.approx([1, 2, 11])
        assert nodes[1].proposal.prompt == "write a kernel"


class TestReleased:
    def test_a_kernel_is_a_run_of_one_step(self, tmp_path):
        level = write_released(tmp_path, {18: right(3.5), 7: right(1.0)})
        record, nodes = steps_of(level / "18.py")
        assert shape(nodes) == [(0, "large", "reported")]
        assert nodes[0].candidate.source == kernel(18)
        assert (record.problem.name, record.problem.source) == ("2_18", REFERENCE)
        assert steps_of(level / "7.py")[0].problem.source == ""

    def test_a_baseline_of_the_same_session_counts_before_a_recorded_one(self, tmp_path):
        level = write_released(tmp_path, {18: right(3.5)})
        file = level.parent / "metrics_level2.json"
        data = json.loads(file.read_text())
        data["problems"]["18"]["measured_baseline"] = right(2.0)
        file.write_text(json.dumps(data))
        found = steps_of(level / "18.py")[1][0].evaluation.published
        assert found.speedup == pytest.approx(2.0)

    def test_a_folder_of_them_is_many_runs_in_their_order(self, tmp_path):
        level = write_released(tmp_path, {18: right(3.5), 7: right(1.0), 100: right(1.0)})
        assert [path.stem for path in published_runs(level)] == ["7", "18", "100"]
        assert published_runs(level.parent) == published_runs(level)
        with pytest.raises(BadInputError, match=r"holds 3 runs .* such as .*/7.py"):
            read_run(level)

    def test_other_files_are_none(self, tmp_path):
        level = write_released(tmp_path, {18: right(3.5)})
        (level / "19.py").write_text(kernel(19))
        (tmp_path / "18.py").write_text(kernel(18))
        assert not is_published(level / "19.py")
        assert not is_published(tmp_path / "18.py")
        assert not is_published(tmp_path)
        assert published_runs(level / "18.py") == []


def test_a_folder_of_runs_has_those_alone(tmp_path):
    write_tree(tmp_path / "out" / "2_18")
    write_loop(tmp_path / "out" / "2_7", "proposal_1", kernel(1), right(1.0))
    (tmp_path / "out" / "notes_1").mkdir()
    assert [path.name for path in published_runs(tmp_path / "out")] == ["2_7", "2_18"]
    assert published_runs(tmp_path / "out" / "2_7") == []


@pytest.mark.parametrize("correct", [True, False])
def test_parts_of_another_type_count_as_missing(tmp_path, correct):
    path = tmp_path / "2_18"
    path.mkdir()
    metrics = {"compiled": True, "correctness": correct, "runtime_stats": [1], "metadata": "x"}
    (path / "step_1.py").write_text(kernel(1))
    (path / "step_1_log.json").write_text('{"node_id": 1, "parent_node_id": [7]}')
    (path / "step_1_metrics.json").write_text(json.dumps(metrics))
    status = "reported" if correct else "wrong_output"
    assert shape(steps_of(path)[1]) == [(0, "large", status)]


def test_measurements_of_another_form_are_none(tmp_path):
    level = write_released(tmp_path, {18: right(3.5)})
    (file,) = tmp_path.rglob("metrics_*.json")
    file.write_text('{"problems": [1]}')
    assert not is_published(level / "18.py")
