"""The form of a call survives JSON, and other calls are told apart."""

import json

import pytest
import torch
from torch import nn

from adaexplore.core.problem import Problem
from adaexplore.package.describe import describe_kernel
from adaexplore.runtime.interface import Interface, call_of, interface_of, tensors_of_call
from adaexplore.runtime.values import UndescribableError, rebuild


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.pairs = ({"a": [1, (2.0, None)]}, "b")
        self.many = list(range(100))
        self.objects = [object()]

    def forward(self, x, pair=None, *, scale=1.0):
        return {"y": self.linear(x) * scale, "rest": (x, None)}


X, Y = torch.rand(2, 4), torch.rand(4)


@pytest.fixture
def interface():
    module = Block()
    kwargs = {"scale": 2.0, "pair": [Y, 3]}
    found = interface_of(module, [X], kwargs, module(X, **kwargs), flat=False)
    return Interface.from_json(json.loads(json.dumps(found.to_json())))


def test_a_call_is_taken_apart_and_put_together(interface):
    tensors = tensors_of_call(interface, [X, [Y, 3]], {"scale": 2.0})
    assert [t is e for t, e in zip(tensors, (X, Y), strict=True)] == [True, True]
    args, kwargs = call_of(interface, tensors)
    assert args[0] is X
    assert kwargs == {"pair": [Y, 3], "scale": 2.0}


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ([X, [Y, 3]], {}),  # another scale
        ([X, [Y, 4]], {"scale": 2.0}),
        ([X, (Y, 3)], {"scale": 2.0}),
        ([X], {"scale": 2.0}),
        ([X, [Y, 3], 2.0], {}),
        ([X, [Y, 3]], {"scale": 2.0, "mask": None}),
    ],
)
def test_other_calls_have_no_tensors_to_give(interface, args, kwargs):
    assert tensors_of_call(interface, args, kwargs) is None


def test_a_result_is_rebuilt(interface):
    assert rebuild(interface.returned, [X, Y]) == {"y": X, "rest": (Y, None)}


def test_a_changed_constant_class_or_code_is_another_structure(interface):
    from adaexplore.runtime.interface import layers_of

    same, other = Block(), Block()
    other.linear.in_features = 5
    assert [layer.constants for layer in layers_of(same)] == [
        layer.constants for layer in interface.layers
    ]
    assert layers_of(other)[1].constants != interface.layers[1].constants
    assert interface.layers[0].constants == {"pairs": ({"a": [1, (2.0, None)]}, "b")}
    same.pairs[0]["a"][1] = [2.0, None]  # a list, where a tuple was
    assert layers_of(same)[0].constants != interface.layers[0].constants


def test_an_opaque_argument_is_refused():
    with pytest.raises(UndescribableError, match="object"):
        interface_of(Block(), [X, object()], {}, X, flat=False)


SWAPPED = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return {"z": x.tanh(), "a": x.to(torch.bfloat16).sum(1)}

def get_inputs():
    return [torch.randn(3, 5)]
"""


def test_the_outputs_of_a_package_have_the_order_of_its_result(tmp_path):
    problem = Problem("swapped", SWAPPED, "cpp", "cpu")
    spec = describe_kernel(problem, SWAPPED, "swapped", tmp_path).spec
    assert spec.interface.returned["dict"] == {"z": {"tensor": 0}, "a": {"tensor": 1}}
    [workload] = spec.workloads
    assert [form[0] for form in workload.outputs] == [(3, 5), (3,)]
