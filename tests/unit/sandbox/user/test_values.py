import collections
import dataclasses

import pytest
import torch

from adaexplore.sandbox.user.values import Inputs, flatten_outputs, map_tensors, tensors_of

Point = collections.namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Result:
    logits: torch.Tensor
    loss: torch.Tensor | None = None


class TestTensorsInside:
    def test_map_reaches_every_container_and_keeps_it(self):
        one = torch.ones(1)
        inputs = Inputs([[one, (one, 5)], Point(one, "s"), Result(one)], {"k": {"deep": one}})
        doubled = map_tensors(lambda tensor: tensor * 2, inputs)
        assert [tensor.item() for tensor in tensors_of(doubled)] == [2.0] * 5
        assert doubled.args[0][1][1] == 5
        assert isinstance(doubled.args[1], Point)
        assert isinstance(doubled.args[2], Result)
        assert [tensor.item() for tensor in tensors_of(inputs)] == [1.0] * 5

    @pytest.mark.parametrize(
        ("make", "paths"),
        [
            (lambda t: t, ["output"]),
            (lambda t: [t, t], ["output[0]", "output[1]"]),
            (lambda t: (t, None), ["output[0]"]),
            (lambda t: {"loss": t, "aux": [t]}, ['output["aux"][0]', 'output["loss"]']),
            (lambda t: {"aux": [t], "loss": t}, ['output["aux"][0]', 'output["loss"]']),
            (lambda t: Point(t, (t,)), ["output.x", "output.y[0]"]),
            (lambda t: Result(t, t), ["output.logits", "output.loss"]),
            (lambda t: torch.topk(t, 1), ["output[0]", "output[1]"]),
        ],
    )
    def test_flatten_names_every_place(self, make, paths):
        flat = flatten_outputs(make(torch.ones(2)))
        assert [path for path, _ in flat] == paths
        assert all(isinstance(tensor, torch.Tensor) for _, tensor in flat)

    @pytest.mark.parametrize(
        ("number", "dtype"),
        [
            (True, torch.bool),
            (3, torch.int64),
            (0.1, torch.float64),
            (1j, torch.complex128),
        ],
    )
    def test_a_number_beside_tensors_becomes_one(self, number, dtype):
        (_, beside), (path, tensor) = flatten_outputs((torch.ones(2, device="meta"), number))
        assert (path, tensor.dtype, tensor.shape) == ("output[1]", dtype, ())
        assert tensor.device == beside.device

    @pytest.mark.parametrize(
        ("value", "path"),
        [
            (None, "output is None"),
            ([torch.ones(1), "text"], r"output\[1\]"),
            (3.0, "output is a value of type float"),
            ([1, 2], r"output\[0\]"),
        ],
    )
    def test_flatten_refuses_what_is_no_tensor(self, value, path):
        with pytest.raises(TypeError, match=path):
            flatten_outputs(value)
