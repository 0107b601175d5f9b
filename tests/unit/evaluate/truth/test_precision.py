import pytest
import torch

from adaexplore.core.problem import PRECISIONS
from adaexplore.evaluate.truth.precision import baseline_scope, floors, set_flags, up_to


@pytest.fixture(autouse=True)
def _untouched_flags():
    matmul, cudnn = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    yield
    torch.set_float32_matmul_precision(matmul)
    torch.backends.cudnn.allow_tf32 = cudnn


def flags():
    return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [("fp32", ("fp32",)), ("tf32", ("fp32", "tf32")), ("half", ("fp32", "tf32", "half"))],
)
def test_stricter_classes_are_always_allowed(asked, allowed):
    assert up_to(asked) == allowed


@pytest.mark.parametrize(
    ("precision", "expected"),
    [("fp32", ("highest", False)), ("tf32", ("high", True)), ("half", ("high", True))],
)
def test_tf32_is_allowed_unless_the_class_is_strict(precision, expected):
    set_flags(precision)
    assert flags() == expected


@pytest.mark.parametrize("precision", ["fp32", "tf32", "half"])
def test_a_scope_puts_the_flags_back_even_after_an_exception(precision):
    set_flags("fp32" if precision != "fp32" else "tf32")
    before = flags()
    inside = []

    def enter_and_fail():
        with baseline_scope(precision, "cpu", autocast=True):
            inside.append(flags())
            raise LookupError

    with pytest.raises(LookupError):
        enter_and_fail()
    assert inside != [before]
    assert flags() == before


@pytest.mark.parametrize(
    ("precision", "autocast", "dtype"),
    [
        ("fp32", True, torch.float32),
        ("tf32", True, torch.float32),
        ("half", True, torch.bfloat16),
        ("half", False, torch.float32),
    ],
)
def test_half_runs_under_autocast_where_that_is_asked(precision, autocast, dtype):
    with baseline_scope(precision, "cpu", autocast=autocast):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == dtype


def test_nothing_in_a_scope_records_gradients():
    with baseline_scope("fp32", "cpu", autocast=False):
        assert not torch.nn.Linear(2, 2)(torch.ones(2)).requires_grad


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_floors_are_roundings_of_the_class(dtype):
    own = floors(dtype, from_problem=True)
    # Some 16 roundings to 24 bits; one by truncation to the 11 bits of TF32, and to 9.
    assert own == {"fp32": pytest.approx(16 * 2**-23, rel=0.05), "tf32": 1 / 1024, "half": 1 / 256}
    assert floors(dtype, from_problem=False) == {"fp32": 1e-4, "tf32": 1 / 128, "half": 1 / 32}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_outputs_of_16_bits_are_rounded_once_in_every_class(dtype):
    assert set(floors(dtype, from_problem=True).values()) == {1 / 256}
    assert set(floors(dtype, from_problem=False).values()) == {1 / 32}


def test_integers_have_no_floor():
    assert set(floors(torch.int64, from_problem=True).values()) == {0.0}


def test_on_inputs_unlike_the_problems_own_more_is_allowed():
    for dtype in (torch.float32, torch.bfloat16):
        own, foreign = floors(dtype, from_problem=True), floors(dtype, from_problem=False)
        assert all(own[precision] < foreign[precision] < 0.1 for precision in PRECISIONS)
