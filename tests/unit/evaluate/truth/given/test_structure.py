from __future__ import annotations

import pytest
import torch

from adaexplore.evaluate.truth.given.inputs import DISTRIBUTIONS, _other_bools
from adaexplore.evaluate.truth.given.structure import structure_of


def draws(make, count=3):
    found = []
    for seed in range(count):
        torch.manual_seed(seed)
        found.append(make())
    return found


def spd():
    a = torch.randn(16, 16)
    return a @ a.T + 16 * torch.eye(16)


FROZEN = {
    "the same in all draws": lambda: torch.linspace(0, 1, 100).cos(),
    "sorted": lambda: torch.rand(4, 50).sort().values,
    "sorted indices": lambda: torch.randint(1000, (20,)).sort().values,
    "a mask of zeros and ones": lambda: (torch.rand(64, 64) > 0.5).float(),
    "whole numbers": lambda: torch.randint(0, 5, (64, 64)).float(),
    "signs": lambda: torch.randn(256).sign() * 0.5,
    "positive definite": spd,
    "a permutation": lambda: torch.randperm(64),
    "lengths that add up": lambda: torch.tensor([3, 5]).index_select(0, torch.randperm(2)),
    "complex": lambda: torch.randn(8, dtype=torch.complex64),
}


@pytest.mark.parametrize("make", FROZEN.values(), ids=FROZEN.keys())
def test_what_only_the_problem_can_draw_stays_as_it_is(make):
    assert structure_of(draws(make)).frozen


def test_one_draw_that_differs_shows_that_an_input_changes():
    one, other = torch.randn(64, 64), torch.randn(64, 64)
    for some in ([one, other, one], [one, one, other], [other, one, one]):
        assert not structure_of(some).frozen


def without_repetition():
    return torch.randperm(256)[:200].reshape(20, 10)


def with_repetition():
    return torch.randint(0, 256, (20, 10))


def test_integers_that_never_repeat_though_some_should_stay_as_they_are():
    assert structure_of(draws(without_repetition)).frozen
    assert not structure_of(draws(with_repetition)).frozen


def test_few_integers_of_many_tell_nothing_by_being_different():
    assert not structure_of(draws(lambda: torch.randint(0, 10**6, (4, 8)))).frozen


FREE = {
    "uniform": lambda: torch.rand(64, 64),
    "normal": lambda: torch.randn(64, 64),
    "bfloat16": lambda: torch.randn(64, 64, dtype=torch.bfloat16),
    "a few numbers": lambda: torch.rand(4),
    "one number": lambda: torch.rand(()),
    "small": lambda: 1e-6 * torch.randn(1000),
}


@pytest.mark.parametrize("make", FREE.values(), ids=FREE.keys())
def test_what_a_generator_happens_to_give_is_no_structure(make):
    found = structure_of(draws(make))
    assert not found.frozen
    assert found.zeros is None
    assert found.least is None
    assert not found.symmetric
    assert not found.unit


def test_one_draw_of_ones_own_making_can_still_be_told_from_a_constant():
    assert not structure_of([torch.randn(64, 64)]).frozen


def test_zeros_that_are_always_there_stay():
    found = structure_of(draws(lambda: torch.randn(8, 8).tril()))
    kept = found.keep(torch.randn(8, 8), torch.ones(8, 8))
    assert torch.equal(kept, kept.tril())
    assert bool((kept.diagonal() != 0).all())


def test_zeros_that_move_are_chance():
    assert structure_of(draws(lambda: torch.randn(64, 64).relu())).zeros is None


def test_a_symmetric_matrix_stays_symmetric():
    def make():
        a = torch.randn(8, 8)
        return a + a.T

    kept = structure_of(draws(make)).keep(torch.randn(8, 8), torch.ones(8, 8))
    assert torch.equal(kept, kept.T)


def test_probabilities_stay_probabilities():
    found = structure_of(draws(lambda: torch.randn(8, 32).softmax(-1)))
    kept = found.keep(torch.randn(8, 32) * 10, torch.ones(8, 32))
    assert torch.allclose(kept.sum(-1), torch.ones(8))
    assert bool((kept >= 0).all())


def test_unit_vectors_stay_unit_vectors():
    unit = torch.nn.functional.normalize
    found = structure_of(draws(lambda: unit(torch.randn(8, 32), dim=-1)))
    kept = found.keep(torch.randn(8, 32), torch.ones(8, 32))
    assert torch.allclose(kept.norm(dim=-1), torch.ones(8))


def test_what_keeps_away_from_zero_goes_on_doing_so():
    found = structure_of(draws(lambda: 0.5 + torch.rand(1000)))
    assert float(found.keep(torch.randn(1000), torch.ones(1000)).min()) >= 0.5


def test_integers_have_the_range_that_was_seen():
    found = structure_of([torch.tensor([3, 7, 5]), torch.tensor([4, 4, 9])])
    assert (found.low, found.high) == (3, 9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.rand(64, 10).argsort(-1) < 1,
        lambda: torch.rand(64, 64).argsort(-1) < 16,
    ],
    ids=["one-hot", "sixteen of each row"],
)
def test_bools_keep_the_number_of_each_row(make):
    own = draws(make)
    assert structure_of(own).row_counts
    for name in DISTRIBUTIONS:
        drawn = _other_bools(name, own[0], structure_of(own), torch.Generator().manual_seed(1))
        assert torch.equal(drawn.sum(-1), own[0].sum(-1))
        assert not torch.equal(drawn, own[0])


def test_bools_of_chance_have_other_shares():
    found = structure_of(draws(lambda: torch.rand(64, 64) < 0.2))
    assert not found.row_counts
    own, generator = torch.rand(64, 64) < 0.2, torch.Generator().manual_seed(1)
    share = {
        name: _other_bools(name, own, found, generator).double().mean()
        for name in (*("normal", "large", "small"),)
    }
    assert share["small"] < 0.2 < share["normal"] < 0.6 < share["large"]
    rows = _other_bools("constant-rows", own, found, generator)
    assert torch.equal(rows.all(-1), rows.any(-1))


def test_two_of_four_stay_zero_where_each_draw_has_them():
    def sparse():
        x = torch.randn(64, 16, 4)
        return x.masked_fill(torch.rand(64, 16, 4).argsort(-1) < 2, 0).reshape(64, 64)

    own = draws(sparse)
    found = structure_of(own)
    assert found.row_counts
    assert torch.equal(found.keep(torch.randn(64, 64), own[1]) == 0, own[1] == 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.rand(64, 256).argsort(-1)[:, :32],
        lambda: torch.randint(0, 100, (128, 1)) + torch.tensor([0, 7]),
        lambda: torch.randint(0, 1000, (64, 1)).sort(0)[0],
        lambda: torch.rand(1024, 1).sort(0)[0],
    ],
    ids=["no repeats in a row", "intervals", "integers down a column", "times down a column"],
)
def test_only_the_problem_can_draw(make):
    assert structure_of(draws(make)).frozen


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randint(0, 100, (128, 2)),
        lambda: torch.randint(0, 100, (64, 32)),
        lambda: torch.rand(3, 3),
        lambda: torch.randn(64, 64).relu(),
        lambda: torch.rand(2, 2, 3),
    ],
)
def test_chance_is_no_structure(make):
    found = structure_of(draws(make))
    assert not found.frozen
    assert not found.row_counts


def with_sentinel():
    labels = torch.randint(0, 21, (64, 32))
    labels[torch.rand(64, 32) < 0.1] = 255
    return labels


def test_a_sentinel_among_integers_keeps_its_places_and_extends_no_range():
    found = structure_of(draws(with_sentinel))
    assert (found.low, found.high, found.sentinel) == (0, 20, 255)
    below = structure_of(
        draws(lambda: with_sentinel().masked_fill_(torch.rand(64, 32) < 0.1, -100))
    )
    assert below.sentinel in (-100, 255)


def test_the_only_number_below_zero_is_a_sentinel_however_thinly_the_others_are_spread():
    def labels():
        found = torch.randint(0, 100_000, (4096,))
        return found.masked_fill_(torch.rand(4096) < 0.1, -100)

    found = structure_of(draws(labels))
    assert found.sentinel == -100
    assert found.low >= 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randint(0, 1000, (64, 32)),
        lambda: torch.randint(-1, 1000, (64, 32)),
        lambda: (2 * torch.randn(64, 32)).round().long(),
        lambda: torch.randint(0, 2, (64, 32)) * 7,
        lambda: torch.randint(1, 21, (64, 32)) * (torch.rand(64, 32) < 0.9),
        lambda: torch.randint(0, 5, (64, 32)).square(),
    ],
    ids=["uniform", "uniform from -1", "normal", "two values", "zero beside one", "gaps"],
)
def test_the_ends_of_a_range_are_no_sentinels(make):
    assert structure_of(draws(make)).sentinel is None


def test_fields_have_ranges_of_their_own_where_they_differ():
    sizes = torch.tensor([1000, 2, 40])
    found = structure_of(draws(lambda: (torch.rand(512, 3) * sizes).long()))
    assert (found.high < sizes).all()
    assert found.high.flatten()[0] > 900
    turned = structure_of(draws(lambda: (torch.rand(3, 512) * sizes[:, None]).long()))
    assert turned.high.shape == (3, 1)
    alike = structure_of(draws(lambda: torch.randint(0, 1000, (512, 3))))
    assert isinstance(alike.high, int)


def offsets(count):
    cuts = torch.randperm(255)[: count - 2].add(1).sort().values
    return torch.cat([torch.tensor([0]), cuts, torch.tensor([256])])


@pytest.mark.parametrize(("count", "frozen"), [(5, True), (7, True), (3, False)])
def test_the_order_of_several_draws_shows_what_one_is_too_short_for(count, frozen):
    assert structure_of(draws(lambda: offsets(count))).frozen == frozen
    assert not structure_of(draws(lambda: torch.randint(0, 256, (count,)))).frozen


def test_rotations_are_drawn_by_the_problem_alone():
    assert structure_of(draws(lambda: torch.linalg.qr(torch.randn(8, 3, 3)).Q)).frozen


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_integers_that_cannot_be_ordered_stay_as_they_are(dtype):
    assert structure_of(draws(lambda: torch.randint(0, 99, (64,)).to(dtype))).frozen
