import pytest
import torch

from adaexplore.evaluate.timing.outputs import finished, finished_for
from adaexplore.evaluate.wire.tensors import share_ring


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


NOT_DENSE = {
    "expanded": lambda: torch.ones(3).expand(4, 3),
    "one number": lambda: torch.ones(1).as_strided((5, 5), (0, 0)),
    "overlapping": lambda: torch.arange(8.0).unfold(0, 4, 1),
    "every second element": lambda: torch.ones(9)[::2],
    "part of each row": lambda: torch.ones(4, 6)[:, :3],
}
DENSE = {
    "contiguous": torch.ones(4, 3),
    "transposed": torch.ones(4, 3).t(),
    "channels last": torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "reversed": torch.ones(2, 3, 4).permute(2, 1, 0),
    "of one row": torch.ones(1).expand(1, 1),
    "a number": torch.tensor(1.0),
}


def place_like(tensor):
    """A place in the layout of a dense tensor."""
    return share_ring(tensor.contiguous(), 1).laid_out(tensor.stride()).tensors[0]


@pytest.mark.parametrize("name", NOT_DENSE)
def test_an_output_that_is_not_dense_is_written_out(name):
    view = NOT_DENSE[name]()
    contiguous = place_like(view.contiguous())
    for [(_, tensor)] in (finished(view), finished_for(view, [contiguous])):
        assert torch.equal(tensor, view)
        assert tensor.is_contiguous()
        assert tensor.untyped_storage().nbytes() == 4 * tensor.numel()


@pytest.mark.parametrize("name", DENSE)
def test_a_dense_output_of_a_baseline_stays_as_it_is(name):
    assert finished(DENSE[name])[0][1] is DENSE[name]


@pytest.mark.parametrize("name", DENSE)
def test_a_candidate_s_output_in_the_layout_of_its_place_stays_as_it_is(name):
    tensor = DENSE[name]
    assert finished_for(tensor, [place_like(tensor)])[0][1] is tensor


@pytest.mark.parametrize(
    ("out", "place"),
    [
        (torch.arange(12.0).reshape(3, 4), torch.empty(4, 3).t()),
        (torch.arange(12.0).reshape(4, 3).t(), torch.empty(3, 4)),
    ],
)
def test_a_candidate_s_output_in_another_layout_is_written_out_for_its_place(out, place):
    [(_, tensor)] = finished_for(out, [place])
    assert tensor.stride() == place.stride()
    assert torch.equal(tensor, out)
    assert tensor.data_ptr() not in (out.data_ptr(), place.data_ptr())


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (torch.ones(1, 3), "output is 1x3 of torch.float32 on cpu in a timed call; it was 4x3 of"),
        (torch.ones(4, 3, dtype=torch.float64), "output is 4x3 of torch.float64"),
        (torch.ones(4, 3, device="meta"), "on meta in a timed call"),
        ((torch.ones(4, 3), torch.ones(4, 3)), "2 output tensors"),
    ],
)
def test_a_candidate_s_output_of_another_form_is_refused(value, says):
    with pytest.raises(TypeError, match=says):
        finished_for(value, [torch.empty(4, 3)])


def test_a_candidate_s_tensor_with_a_class_of_its_own_is_refused():
    with pytest.raises(TypeError, match="output is of the class Lazy"):
        finished_for(torch.ones(2).as_subclass(Lazy), [torch.empty(2)])
