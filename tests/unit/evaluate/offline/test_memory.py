import numpy as np
import pytest
import torch

from adaexplore.evaluate.offline.memory import OutOfBoundsError, TensorMemory, tensors_in

FLOAT = np.dtype(np.float32)


def pointers(tensor, *elements):
    return np.array([tensor.data_ptr() + 4 * i for i in elements], np.uint64)


def load(memory, at, mask=None):
    mask = np.ones(at.shape, bool) if mask is None else np.array(mask)
    return memory.load(at, mask, np.zeros(at.shape, FLOAT), FLOAT)


class TestTensorMemory:
    def test_a_load_returns_the_stored_values(self):
        x = torch.arange(8.0)
        memory = TensorMemory([x])
        memory.store(pointers(x, 1, 3), np.array([10, 30], FLOAT), np.array([True, True]))
        assert x.tolist() == [0, 10, 2, 30, 4, 5, 6, 7]
        assert load(memory, pointers(x, 3, 7)).tolist() == [30, 7]

    @pytest.mark.parametrize("element", [8, -1, 1 << 40])
    def test_an_address_of_no_tensor_is_refused(self, element):
        x = torch.arange(8.0)
        with pytest.raises(OutOfBoundsError, match="load out of bounds in 1 of 2 lanes"):
            load(TensorMemory([x]), pointers(x, 0, element))

    def test_a_masked_address_is_not_checked(self):
        x = torch.arange(8.0)
        assert load(TensorMemory([x]), pointers(x, 7, 8), [True, False]).tolist() == [7, 0]

    def test_a_view_may_access_its_whole_storage(self):
        x = torch.arange(8.0)
        assert load(TensorMemory([x[:2]]), pointers(x, 7)).tolist() == [7]

    def test_the_error_states_the_distance_to_the_tensor(self):
        x = torch.arange(8.0)
        with pytest.raises(OutOfBoundsError, match="8 bytes past the end of a tensor's memory"):
            load(TensorMemory([x]), pointers(x, 10))

    def test_a_launch_without_tensors_has_no_memory(self):
        with pytest.raises(OutOfBoundsError):
            load(TensorMemory([3, "x"]), np.array([4096], np.uint64))


class TestAddressesPassedAsNumbers:
    @pytest.mark.parametrize("within", [0, 4])
    @pytest.mark.parametrize("kind", [torch.Tensor, torch.nn.Parameter])
    def test_a_table_of_pointers_gives_access_to_its_tensors(self, within, kind):
        x, table = kind(torch.arange(8.0)), torch.zeros(3, dtype=torch.int64)
        table[1] = x.data_ptr() + 4 * within
        assert load(TensorMemory([table]), pointers(x, within, 7)).tolist() == [within, 7]

    def test_an_address_passed_as_a_number_gives_access(self):
        x, own = torch.arange(8.0), torch.zeros(1)
        assert load(TensorMemory([own, x.data_ptr()]), pointers(x, 7)).tolist() == [7]
        assert load(TensorMemory([own, (x.data_ptr(),)]), pointers(x, 7)).tolist() == [7]

    def test_an_address_past_such_a_tensor_is_out_of_bounds(self):
        x, table = torch.arange(8.0), torch.zeros(1, dtype=torch.int64)
        table[0] = x.data_ptr()
        with pytest.raises(OutOfBoundsError, match="4 bytes past the end"):
            load(TensorMemory([table]), pointers(x, 0, 9))

    def test_a_tensor_without_a_passed_address_stays_out_of_bounds(self):
        x, table = torch.arange(8.0), torch.zeros(1, dtype=torch.int64)
        with pytest.raises(OutOfBoundsError):
            load(TensorMemory([table]), pointers(x, 0))


def test_tensors_are_found_in_tuples():
    x, y = torch.zeros(1), torch.zeros(2)
    assert [t.numel() for t in tensors_in([1, x, (2, (y,)), None])] == [1, 2]
