import fcntl
import itertools
import os

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core import codec
from adaexplore.evaluate.wire.tensors import (
    dense_strides,
    fingerprint,
    open_ring,
    open_shared,
    share,
    share_ring,
    shuffled_parts,
)

ENOUGH_S = 60.0
DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.bool,
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.complex64,
]


def sample(dtype, *shape):
    torch.manual_seed(0)
    numbers = torch.randint(0, 100, shape)
    return (numbers % 2 == 0) if dtype is torch.bool else numbers.to(dtype)


LAYOUTS = {
    "contiguous": torch.arange(24.0).reshape(2, 3, 4),
    "transposed": torch.arange(24.0).reshape(4, 6).t(),
    "channels last": torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "a slice": torch.arange(24.0)[1:20:3],
    "a middle part": torch.arange(24.0).reshape(4, 6)[1:3, 2:5],
    "expanded": torch.arange(3.0).expand(4, 3),
    "overlapping": torch.arange(8.0).unfold(0, 4, 1),
    "0-dim": torch.tensor(2.5),
    "empty": torch.empty(0),
    "empty with a shape": torch.empty(3, 0, 2),
    "a parameter": torch.nn.Parameter(torch.ones(3)),
    "conjugated": torch.tensor([1 + 2j]).conj(),
}


@pytest.fixture
def other_process(server):
    worker = server.spawn("worker_entries:open_tensors", name="opener")
    yield lambda request, shared: worker.call(
        request | {"handles": [codec.write(s.handle) for s in shared]},
        ENOUGH_S,
        [fd for s in shared for fd in s.fds],
    )
    worker.kill()


class TestSharing:
    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    def test_another_process_sees_the_same_numbers(self, other_process, dtype):
        tensor = sample(dtype, 7, 5)
        shared = share(tensor)
        [seen] = other_process({"do": "describe"}, [shared])["tensors"]
        assert seen["dtype"] == str(dtype)
        assert seen["sum"] == str(tensor.sum().item())
        assert seen["fingerprint"] == fingerprint(tensor) == fingerprint(shared.tensor)

    @pytest.mark.parametrize("name", LAYOUTS)
    def test_shape_and_strides_arrive_too(self, other_process, name):
        tensor = LAYOUTS[name]
        shared = share(tensor)
        assert torch.equal(shared.tensor, tensor)
        [seen] = other_process({"do": "describe"}, [shared])["tensors"]
        assert seen["shape"] == list(tensor.shape)
        assert seen["strides"] == list(tensor.stride())
        assert seen["fingerprint"] == fingerprint(tensor)

    def test_several_travel_together_in_order(self, other_process):
        tensors = [sample(torch.float32, n) for n in (1, 0, 3)] + [torch.empty(0), torch.ones(2)]
        seen = other_process({"do": "describe"}, [share(t) for t in tensors])["tensors"]
        assert [s["shape"] for s in seen] == [list(t.shape) for t in tensors]

    def test_what_the_other_writes_is_seen_here(self, other_process):
        shared = share(torch.zeros(4))
        other_process({"do": "fill", "value": 3.0}, [shared])
        assert torch.equal(shared.tensor, torch.full((4,), 3.0))

    def test_it_is_a_copy(self):
        tensor = torch.zeros(4)
        shared = share(tensor)
        shared.tensor.fill_(1.0)
        assert not tensor.any()

    @pytest.mark.parametrize("name", LAYOUTS)
    def test_filling_puts_everything_back(self, name):
        original = LAYOUTS[name].detach().resolve_conj()
        shared = share(original)
        mark = fingerprint(shared.tensor)
        if original.numel():
            shared.tensor.as_strided((1,), (1,)).fill_(77)
            assert fingerprint(shared.tensor) != mark
        shared.fill(original)
        assert fingerprint(shared.tensor) == mark

    def test_the_memory_outlives_its_descriptor(self):
        shared = share(torch.ones(4))
        shared.close()
        assert torch.equal(shared.tensor, torch.ones(4))

    def test_the_same_process_can_open_it_too(self):
        shared = share(torch.arange(6.0).reshape(2, 3).t())
        [opened] = open_shared([shared.handle], shared.fds)
        opened[2, 1] = -1.0
        assert shared.tensor[2, 1] == -1.0


def strides_in_order(shape, order):
    """Strides of a dense tensor with its dimensions in this order in memory, the last innermost."""
    strides, step = [0] * len(shape), 1
    for dim in reversed(order):
        strides[dim], step = step, step * shape[dim]
    return tuple(strides)


@st.composite
def shapes_and_orders(draw):
    shape = draw(st.lists(st.integers(1, 5), max_size=5))
    return tuple(shape), draw(st.permutations(range(len(shape))))


class TestLayouts:
    @given(shapes_and_orders())
    def test_dense_strides_are_those_without_gaps_and_overlaps(self, drawn):
        shape, order = drawn
        strides = strides_in_order(shape, order)
        found = dense_strides(shape, strides)
        pairs = zip(shape, found, strides, strict=True)
        assert all(f == (1 if n == 1 else s) for n, f, s in pairs)

    @pytest.mark.parametrize(
        "strides",
        [
            pytest.param((8, 2), id="gaps"),
            pytest.param((16, 1), id="padded rows"),
            pytest.param((0, 1), id="expanded"),
            pytest.param((1, 1), id="overlapping"),
            pytest.param((-4, 1), id="negative"),
            pytest.param((1 << 62, 1), id="larger than any memory"),
            pytest.param((1,), id="of another rank"),
            pytest.param((), id="none"),
        ],
    )
    def test_other_strides_are_not_dense_and_give_contiguous_places(self, strides):
        assert dense_strides((3, 4), strides) is None
        ring = share_ring(torch.empty(3, 4), 2).laid_out(strides)
        assert all(tensor.is_contiguous() for tensor in ring.tensors)

    @given(shapes_and_orders(), st.data())
    def test_places_in_any_layout_stay_within_their_own_memory(self, drawn, data):
        shape, order = drawn
        anything = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-2, 30)
        named = data.draw(
            st.just(strides_in_order(shape, order))
            | st.lists(anything, min_size=len(shape), max_size=len(shape)).map(tuple)
        )
        ring = share_ring(torch.empty(shape), 3)
        ring.memory.tensor.zero_()
        ring.laid_out(named).tensors[1].fill_(1.0)
        assert [
            bool((t == value).all()) for t, value in zip(ring.tensors, (0, 1, 0), strict=True)
        ] == [True] * 3

    def test_a_ring_is_opened_in_the_layout_that_it_was_given(self):
        ring = share_ring(torch.empty(3, 4), 2)
        opened = open_ring(ring.laid_out((1, 3)).memory.handle, ring.memory.fds).tensors
        opened[1].copy_(torch.arange(12.0).reshape(3, 4))
        assert opened[1].stride() == (1, 3)
        assert torch.equal(
            ring.tensors[1].flatten(), torch.arange(12.0).reshape(3, 4).t().flatten()
        )


class TestFingerprint:
    @given(
        content=st.binary(min_size=1, max_size=100),
        place=st.integers(0, 10**6),
        change=st.integers(1, 255),
    )
    def test_it_changes_with_any_single_byte(self, content, place, change):
        tensor = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        before = fingerprint(tensor)
        tensor[place % len(content)] ^= change
        assert fingerprint(tensor) != before

    @given(values=st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=20))
    def test_equal_content_has_an_equal_fingerprint_in_any_layout(self, values):
        tensor = torch.tensor(values)
        padded = torch.stack([tensor, torch.zeros_like(tensor)], dim=1)[:, 0]
        assert fingerprint(tensor.clone()) == fingerprint(tensor) == fingerprint(padded)

    def test_it_minds_the_order(self):
        assert fingerprint(torch.tensor([1.0, 2.0, 3.0, 4.0])) != fingerprint(
            torch.tensor([3.0, 4.0, 1.0, 2.0])
        )

    @pytest.mark.parametrize("start", range(9))
    def test_a_slice_may_begin_anywhere(self, start):
        whole = torch.arange(40, dtype=torch.uint8)
        assert fingerprint(whole[start:]) == fingerprint(whole[start:].clone())

    def test_nan_is_content_like_any_other(self):
        assert fingerprint(torch.tensor([float("nan")])) == fingerprint(
            torch.tensor([float("nan")])
        )

    def test_a_tensor_larger_than_a_chunk(self):
        tensor = torch.zeros(9 * (1 << 24) // 4)
        before = fingerprint(tensor)
        tensor[-1] = 1.0
        assert fingerprint(tensor) != before


def test_whoever_opens_shared_memory_cannot_change_its_size():
    [fd] = share(torch.ones(1024)).fds
    for size in (0, 1 << 20):
        with pytest.raises(PermissionError):
            os.ftruncate(fd, size)
    with pytest.raises(PermissionError):
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)


@pytest.mark.parametrize("words", [1, 511, 513, 100_003])
def test_the_parts_of_a_memory_are_all_of_it(words):
    parts = sorted(shuffled_parts(words))
    assert (parts[0][0], parts[-1][1]) == (0, words)
    assert all(one[1] == other[0] for one, other in itertools.pairwise(parts))


def test_nobody_knows_which_part_is_copied_last():
    assert len({shuffled_parts(100_003)[-1] for _ in range(40)}) > 10
