from types import SimpleNamespace

import torch
from torch import nn

from adaexplore.core.problem import Workload
from adaexplore.core.verdict.facts import InputForm, ReferenceFacts, WorkloadFacts
from adaexplore.evaluate.truth.forms import input_forms
from adaexplore.sandbox.user.training import TrainingStep
from adaexplore.sandbox.user.values import Inputs

FILE = Workload("captured", file="inputs.pt", digest="1")


class Layer(nn.Module):
    def forward(self, x, places, cache, scale=None, mask=None, *more):
        return x


GIVEN = Inputs(
    [
        torch.tensor([3.0, -4.0], dtype=torch.bfloat16),
        torch.arange(6).view(2, 3).t(),
        [torch.zeros(2), torch.tensor([1.0, float("-inf")])],
        0.5,
    ],
    {"mask": torch.tensor([True, False, False, False])},
)


def test_names_shapes_strides_and_values():
    assert input_forms(Layer(), GIVEN, FILE) == (
        InputForm("x", (2,), "bfloat16", (), "rms 3.5, at most 4"),
        InputForm("places", (3, 2), "int64", (1, 3), "0 to 5"),
        InputForm("cache[0]", (2,), "float32", (), "all 0"),
        InputForm("cache[1]", (2,), "float32", (), "rms 1, at most 1, 50% not finite"),
        InputForm("scale", None, "float", (), "0.5"),
        InputForm("mask", (4,), "bool", (), "25% true"),
    )


def test_what_the_source_draws_is_seen_there():
    assert input_forms(Layer(), GIVEN, Workload()) == ()


def test_tensors_without_elements_or_data_have_no_values():
    given = Inputs([torch.empty(0), torch.empty(3, device="meta")])
    assert [form.values for form in input_forms(Layer(), given, FILE)] == ["", ""]


def test_they_are_read_back():
    forms = input_forms(Layer(), GIVEN, FILE)
    facts = ReferenceFacts(inputs=forms, workloads=(WorkloadFacts("a", (), (), forms),))
    assert ReferenceFacts.from_json(facts.to_json()) == facts


def test_names_are_those_of_the_module_in_a_training_step():
    step = TrainingStep(Layer(), SimpleNamespace(parameters=()))
    assert [form.path for form in input_forms(step, Inputs([torch.ones(2), 3]), FILE)] == [
        "x",
        "places",
    ]


def test_arguments_without_a_name_have_a_number():
    given = Inputs([torch.ones(2), None, None, None, None, torch.ones(3)])
    assert input_forms(Layer(), given, FILE)[-1].path == "argument 5"
