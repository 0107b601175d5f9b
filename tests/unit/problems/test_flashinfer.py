"""Definitions of FlashInfer-Bench and tasks of SOL-ExecBench as problems."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Checks, Tolerance
from adaexplore.evaluate.judge.examine import job
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.truth import Truths
from adaexplore.problems import load_problem
from adaexplore.problems.benchmarks import benchmark_named
from adaexplore.sandbox.user.user_code import Instance
from flashinfer_files import (
    BLOB,
    DATASET,
    NORM,
    PAGED,
    PAGED_WORKLOADS,
    POINTER,
    TASKS,
    definition,
    lines,
    put,
    safetensors,
    tensor,
)


@pytest.fixture
def dataset(tmp_path):
    return put(tmp_path / "data", DATASET)


@pytest.fixture
def tasks(tmp_path):
    return put(tmp_path / "tasks", TASKS)


def loaded(path, name="", **more):
    return load_problem(path, device="cpu", language="cpp", definition=name, **more)


def drawn(problem, folder, workload=0, seed=0):
    """The inputs of a workload by name."""
    instance = Instance.of(problem, folder)
    inputs = instance.inputs(seed, problem.workloads[workload])
    names = instance.model.forward.__code__.co_varnames[1:]
    return instance, dict(zip(names, inputs.args, strict=False)), inputs


def test_a_definition_becomes_a_problem_of_its_workloads(dataset, tmp_path):
    problem = loaded(dataset, "norm_h64")
    assert problem.name == "norm_h64"
    assert problem.workloads[0].name == "00000000 batch_size=4"
    instance, given, inputs = drawn(problem, tmp_path)
    assert {name: tuple(t.shape) for name, t in given.items()} == {
        "hidden_states": (4, 64),
        "weight": (64,),
    }
    x = given["hidden_states"].float()
    expected = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * given["weight"].float()
    [(_, out)] = instance(inputs)  # run() has its parameters in another order
    assert torch.equal(out, expected.bfloat16())


def test_the_file_of_a_definition_is_a_problem_too(dataset):
    file = dataset / "definitions/rmsnorm/norm_h64.json"
    assert loaded(file).digest == loaded(dataset, "norm_h64").digest


@pytest.mark.parametrize(
    ("workloads", "timed", "sizes", "clocked"),
    [
        ("", "", [4, 16, 1, 64, 2], [4, 1, 64]),
        ("all", "all", [4, 16, 1, 64, 2], [4, 16, 1, 64, 2]),
        ("2", "1", [1, 64], [1]),
        ("00000003,00000001", "00000003", [16, 64], [64]),
    ],
)
def test_a_candidate_is_right_on_chosen_workloads_and_timed_on_some(
    dataset, workloads, timed, sizes, clocked
):
    problem = loaded(dataset, "norm_h64", workloads=workloads, timed=timed)
    assert [int(one.name.rpartition("=")[2]) for one in problem.workloads] == sizes
    assert [int(one.name.rpartition("=")[2]) for one in problem.timed_workloads] == clocked


def test_missing_indices_are_drawn_by_rule_and_said(dataset, tmp_path):
    problem = loaded(dataset, "paged_d8")
    [(label, why)] = problem.labels
    assert label == "synthesized-data"
    assert "paged.safetensors: is a pointer of Git LFS" in why
    _, given, _ = drawn(problem, tmp_path)
    assert given["kv_indptr"][0] == 0
    assert given["kv_indptr"][-1] == 9
    assert (given["kv_indptr"].diff() >= 1).all()
    assert len(given["kv_indices"].unique()) == 9
    assert given["sm_scale"] == 0.35


@pytest.mark.parametrize("is_there", [True, False])
def test_the_place_of_a_dataset_is_no_part_of_a_problem(dataset, tmp_path, is_there):
    if not is_there:
        (dataset / BLOB).unlink()
    elsewhere = shutil.copytree(dataset, tmp_path / "elsewhere" / "data")
    assert loaded(elsewhere, "paged_d8").digest == loaded(dataset, "paged_d8").digest


def test_a_cache_holds_little_more_than_is_read_of_it(dataset, tmp_path):
    _, given, _ = drawn(loaded(dataset, "paged_d8"), tmp_path)
    assert given["k_cache"].shape == (11, 1, 8)  # of 4000 pages
    assert given["kv_indices"].max() < 11


def test_indices_in_a_file_are_used_and_unread_pages_left_out(dataset, tmp_path):
    offsets, indices = [0, 2, 5, 9], [3999, 7, 7, 100, 5, 3999, 0, 1, 2]
    (dataset / BLOB).write_bytes(safetensors(kv_indptr=offsets, kv_indices=indices))
    problem = loaded(dataset, "paged_d8")
    assert problem.labels == ()
    before = problem.digest
    (dataset / BLOB).write_bytes(safetensors(kv_indptr=[0, 1, 5, 9], kv_indices=indices))
    assert loaded(dataset, "paged_d8").digest != before
    (dataset / BLOB).write_bytes(safetensors(kv_indptr=offsets, kv_indices=indices))
    assert problem.access.reads == (str((dataset / BLOB).resolve()),)
    _, given, _ = drawn(problem, tmp_path)
    assert given["kv_indptr"].tolist() == offsets
    assert given["k_cache"].shape[0] == len(set(indices))
    same = torch.tensor(indices)[:, None] == torch.tensor(indices)
    assert torch.equal(given["kv_indices"][:, None] == given["kv_indices"], same)


def test_minus_infinity_is_right_where_the_reference_has_it(dataset, tmp_path):
    offsets, indices = [0, 4, 4, 9], list(range(9))
    (dataset / BLOB).write_bytes(safetensors(kv_indptr=offsets, kv_indices=indices))
    problem = loaded(dataset, "paged_d8")
    instance, _, inputs = drawn(problem, tmp_path)
    runs = ReferenceRuns(problem, instance, inputs, problem.workloads[0])
    _, truth = Truths(runs, []).from_problem[0].truths
    [_, (_, right)] = instance(inputs)
    assert right.isneginf().tolist() == [False, True, False]
    assert truth.classify(truth.deviation(right)) == "half"
    assert truth.classify(truth.deviation(right.clamp(min=-1e4))) is None


def test_structured_inputs_are_left_alone_by_other_distributions(dataset, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = job({"problem": loaded(dataset, "paged_d8").to_json()})
    assert found["why"] == ""
    assert "held" in found["facts"]["input_sets"]
    assert len(found["facts"]["input_sets"]) == 10
    assert "synthesized-data" in found["facts"]["labels"]
    assert "casts of the reference" in " ".join(found["facts"]["notes"])


def test_a_definition_without_workloads_gets_chosen_sizes(dataset):
    (dataset / "workloads/gqa_paged/paged_d8.jsonl").unlink()
    problem = loaded(dataset, "paged_d8")
    assert [one.name.split()[0] for one in problem.workloads] == ["made1", "made2"]
    assert "has no workloads to be used as made1" in dict(problem.labels)["synthesized-data"]


def test_constraints_are_checked(dataset, tmp_path):
    offsets, indices = [0, 2, 5, 8], list(range(9))
    (dataset / BLOB).write_bytes(safetensors(kv_indptr=offsets, kv_indices=indices))
    with pytest.raises(BadProblemError, match=r"num_kv_indices == kv_indptr\[-1\]"):
        drawn(loaded(dataset, "paged_d8"), tmp_path)


def test_inputs_that_the_reference_writes_to_are_clones(dataset, tmp_path):
    source = "def run(x, y):\n    y[0] = x[0]\n    return x + y\n"
    inputs = {"x": tensor("n", dtype="float32"), "y": tensor("n", dtype="float32")}
    put(
        dataset,
        {
            "definitions/t/t1.json": json.dumps(
                definition("t1", "t", source, inputs, {}, {"n": 4})
            ),
        },
    )
    instance, given, inputs = drawn(loaded(dataset, "t1"), tmp_path)
    before = given["y"].clone()
    instance(inputs)
    assert torch.equal(given["y"], before)


@pytest.mark.parametrize(
    ("name", "more", "why"),
    [
        ("sampling_v16", {}, "draws random numbers (multinomial)"),
        ("norm_h46", {}, "no definition norm_h46; near are norm_h64"),
        ("", {}, "holds 3 definitions; choose one by --definition NAME"),
        ("norm_h64", {"workloads": "99"}, ""),
        ("norm_h64", {"workloads": "abc"}, "--workloads abc: no workload with this UUID"),
        ("norm_h64", {"timed": "0000"}, "--timed 0000: several workloads with this UUID"),
    ],
)
def test_what_cannot_be_loaded_says_why_in_a_line(dataset, name, more, why):
    if not why:
        assert len(loaded(dataset, name, **more).workloads) == 5
        return
    with pytest.raises(BadProblemError) as caught:
        loaded(dataset, name, **more)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"inputs": {}}, "run() takes"),
        ({"reference": "def walk(x): ..."}, "defines no function run"),
        ({"reference": "def run(x:"}, "is no Python"),
        ({"inputs": {"hidden_states": tensor("hidden", dtype="float4_e2m1fn_x2")}}, "float4"),
        ({"axes": {"hidden": {"type": "expr", "expression": "open(1)"}}}, "cannot be computed"),
        ({"axes": 3}, "is no definition"),
    ],
)
def test_a_definition_that_is_none_says_why_in_a_line(dataset, change, why):
    file = dataset / "definitions/rmsnorm/norm_h64.json"
    file.write_text(json.dumps(NORM | change))
    if change == {"inputs": {}}:
        file.write_text(json.dumps(NORM | {"inputs": {"z": tensor("hidden")}}))
    with pytest.raises(BadProblemError) as caught:
        loaded(file)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_of_datasets_are_refused_for_other_files(tmp_path):
    file = tmp_path / "problem.py"
    file.write_text("class Model: ...\ndef get_inputs(): ...\n")
    with pytest.raises(BadProblemError, match="is no dataset: leave out --definition"):
        loaded(file, "norm_h64")


def test_queries_without_keys_are_left_out_where_offsets_are_missing(dataset):
    prefill = json.loads(json.dumps(PAGED))
    prefill["inputs"]["qo_indptr"] = tensor("len_indptr", dtype="int32")
    prefill["axes"]["total_q"] = {"type": "var"}
    prefill["reference"] = prefill["reference"].replace("kv_indptr,", "kv_indptr, qo_indptr,")
    prefill["constraints"].append("total_q == qo_indptr[-1].item()")
    [trace] = json.loads(json.dumps(PAGED_WORKLOADS))
    trace["workload"]["axes"]["total_q"] = 10
    put(
        dataset,
        {
            "definitions/gqa_paged/paged_d8.json": json.dumps(prefill),
            "workloads/gqa_paged/paged_d8.jsonl": lines([trace]),
        },
    )
    [left_out] = benchmark_named("flashinfer").excluded(dataset)[:1]
    assert left_out.key == "paged_d8/11111111"
    assert "more queries than keys" in left_out.reason
    names = [one.name.split()[0] for one in loaded(dataset, "paged_d8").workloads]
    assert names == ["made1", "made2"]  # they stand in


def test_an_axis_of_an_expression_and_a_scalar_reach_the_inputs(tasks, tmp_path):
    instance, given, inputs = drawn(loaded(tasks / "L1/rope_half"), tmp_path)
    assert given["cos"].shape == (2, 4)
    assert given["eps"] == 0.5
    [(_, out)] = instance(inputs)
    assert torch.equal(out, given["x"][:, :4] * given["cos"] + 0.5)


def test_inputs_of_a_task_are_made_by_its_own_function(tasks, tmp_path):
    _, given, _ = drawn(loaded(tasks, "custom_matmul"), tmp_path)
    assert torch.equal(given["B"], torch.ones(5, 3))


def test_a_task_prescribes_tolerances_for_each_workload(tasks):
    usual, other = (one.name for one in loaded(tasks, "rope_half").workloads)
    assert loaded(tasks, "rope_half").checks == Checks(
        tolerances=(
            Tolerance(1e-2, 1e-2, "SOL-ExecBench", 0.99, usual),
            Tolerance(1e-3, 1e-4, "SOL-ExecBench", 0.99, other),
            Tolerance(0.0, 0.5, "SOL-ExecBench (error cap)", 1.0, other),
        )
    )
    assert loaded(tasks, "custom_matmul").checks.tolerances == (
        Tolerance(1e-2, 1e-2, "SOL-ExecBench", 0.99),
    )


def test_a_lone_pointer_is_one_clear_line(dataset):
    trace = PAGED_WORKLOADS[0]
    assert (dataset / trace["workload"]["inputs"]["kv_indptr"]["path"]).read_text() == POINTER
    [(_, why)] = loaded(dataset, "paged_d8").labels
    assert "git lfs pull" in why
    assert "\n" not in why
