"""Every example can be searched over: it runs, repeats, and its result depends on what goes in."""

from pathlib import Path

import pytest
import torch

from adaexplore.problems import kernelbench
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import check_outputs, map_tensors

FOLDER = Path(__file__).parents[3] / "examples" / "problems"
FILES = sorted(FOLDER.glob("*.py"))


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def load(request, tmp_path):
    problem = kernelbench.load(request.param, device="cpu", language="cpp")

    def load(seed: int = 0) -> Instance:
        return Instance.load(
            problem.source,
            "Model",
            device=problem.device,
            seed=seed,
            mode=problem.mode,
            folder=tmp_path,
            name=problem.name,
        )

    return load


def distance(outputs, others) -> float:
    """The smallest relative distance over the outputs; of integers, the share that differs."""
    distances = []
    for (path, a), (other_path, b) in zip(outputs, others, strict=True):
        assert (path, a.shape) == (other_path, b.shape)
        if a.is_floating_point():
            a, b = a.double(), b.double()
            distances.append(((a - b).norm() / a.norm()).item())
        else:
            distances.append((a != b).double().mean().item())
    return min(distances)


def test_there_are_as_many_as_promised():
    assert len(FILES) >= 12


def test_the_readme_lists_every_example():
    text = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    assert [file.name for file in FILES if f"problems/{file.name}" not in text] == []


def test_same_seed_same_outputs(load):
    instance = load()
    outputs, again = instance(instance.inputs(1)), (other := load())(other.inputs(1))
    check_outputs("example", outputs, instance.device)
    for (path, a), (_, b) in zip(outputs, again, strict=True):
        assert torch.equal(a, b), path


def test_a_second_call_repeats_the_first_and_leaves_its_inputs_alone(load):
    instance = load()
    inputs = instance.inputs(1)
    outputs = [(path, tensor.clone()) for path, tensor in instance(inputs)]
    for (path, a), (_, b) in zip(outputs, instance(inputs), strict=True):
        assert torch.equal(a, b), path


def test_every_output_depends_on_the_inputs(load):
    instance = load()
    assert distance(instance(instance.inputs(1)), instance(instance.inputs(2))) > 0.05


def test_every_parameter_and_statistic_matters(load):
    instance = load()
    inputs = instance.inputs(1)
    state = instance.model.state_dict()
    before = instance(inputs)
    for name, tensor in state.items():
        if not tensor.is_floating_point():
            continue
        kept = tensor.clone()
        tensor.copy_(torch.rand_like(tensor) + 0.5)
        after = instance(inputs)
        tensor.copy_(kept)
        changed = [not torch.equal(a, b) for (_, a), (_, b) in zip(before, after, strict=True)]
        assert any(changed), name


def test_double_precision_agrees(load):
    instance = load()
    inputs = instance.inputs(1)
    outputs = [
        (path, tensor.clone().double() if tensor.is_floating_point() else tensor)
        for path, tensor in instance(inputs)
    ]
    instance.model.double()
    exact = instance(map_tensors(lambda t: t.double() if t.is_floating_point() else t, inputs))
    for (path, a), (_, b) in zip(exact, outputs, strict=True):
        assert a.dtype == b.dtype, path
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
