import pytest
import torch

from adaexplore.evaluate.timing.outputs import finished


class Late(list):
    """Computes what it holds when it is looked at."""

    def __init__(self, compute) -> None:
        super().__init__([None])
        self._compute = compute

    def __iter__(self):
        yield self._compute()


class Lazy(torch.Tensor):
    pass


def test_a_container_is_looked_into_now():
    computed = []

    def compute():
        computed.append(True)
        return torch.ones(2)

    [(path, tensor)] = finished(Late(compute))
    assert computed == [True]
    assert path == "output[0]"
    assert torch.equal(tensor, torch.ones(2))


def test_a_tensor_with_a_class_of_its_own_is_refused():
    with pytest.raises(TypeError, match=r"output\[1\] is of the class Lazy"):
        finished((torch.ones(2), torch.ones(2).as_subclass(Lazy)))


def test_a_parameter_is_a_plain_tensor():
    parameter = torch.nn.Parameter(torch.ones(2))
    assert finished(parameter)[0][1] is parameter


@pytest.mark.parametrize(
    "view",
    [
        lambda: torch.ones(3).expand(4, 3),
        lambda: torch.ones(1).as_strided((5, 5), (0, 0)),
    ],
)
def test_a_number_that_stands_for_many_is_written_out(view):
    [(_, tensor)] = finished(view())
    assert torch.equal(tensor, view())
    assert tensor.untyped_storage().nbytes() == 4 * tensor.numel()


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(4, 3).t(),
        torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.ones(9)[::2],
        torch.ones(1).expand(1, 1),
        torch.tensor(1.0),
    ],
)
def test_other_layouts_stay_as_they_are(tensor):
    assert finished(tensor)[0][1] is tensor
