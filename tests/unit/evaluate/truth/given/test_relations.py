"""Relations between inputs: found in all draws, kept by further ones, and never by chance."""

import pytest
import torch

from adaexplore.evaluate.truth.given.inputs import related, vary
from adaexplore.evaluate.truth.given.relations import OrderedPair, in_order
from adaexplore.evaluate.truth.given.structure import structure_of
from adaexplore.sandbox.user.values import Inputs


def draws(make, count=3):
    found = []
    for seed in range(count):
        torch.manual_seed(seed)
        found.append(Inputs(make(), {}))
    return found


def found(make, count=3):
    """Return the numbers of the frozen inputs, and the orders."""
    drawn = draws(make, count)
    structures = [structure_of(row) for row in zip(*(d.args for d in drawn), strict=True)]
    orders = related(drawn, structures)
    return [i for i, s in enumerate(structures) if s.frozen], orders


def ends(least=1):
    begin = torch.randint(0, 50, (32,))
    return begin, begin + torch.randint(least, 50, (32,))


def lengths():
    return torch.randint(1, 33, (8,))


@pytest.mark.parametrize(("least", "strict"), [(1, True), (0, False)])
def test_a_begin_is_never_above_its_end(least, strict):
    assert found(lambda: ends(least)) == ([], (OrderedPair(0, 1, strict),))


def test_bounds_that_are_real_numbers_are_in_order():
    def bounds():
        low = torch.randn(64)
        return low, low + torch.rand(64)

    assert found(bounds) == ([], (OrderedPair(0, 1, strict=True),))


NO_ORDER = {
    "independent": lambda: (torch.randn(64), torch.randn(64)),
    "ranges apart": lambda: (torch.randint(0, 9, (64,)), torch.randint(9, 20, (64,))),
    "few": lambda: (torch.rand(4), 1 + torch.rand(4)),
    "a number beside bools": lambda: (torch.randint(0, 2, (64,)), torch.rand(64) > 2),
}


@pytest.mark.parametrize("make", NO_ORDER.values(), ids=NO_ORDER.keys())
def test_what_is_no_pair_is_in_no_order(make):
    assert found(make)[1] == ()


def test_the_same_input_twice_is_drawn_as_before():
    def twice():
        x = torch.randn(64)
        return x, x.clone()

    assert found(twice) == ([], ())


def marked(count):
    return torch.arange(32) < count[:, None]


FOLLOWS = {
    "a mask": lambda n: (n, marked(n)),
    "the mask of the padding": lambda n: (n, ~marked(n)[:, None, None]),
    "a mask of zeros and ones": lambda n: (n, marked(n).float()),
    "a mask to add": lambda n: (n, torch.zeros(8, 32).masked_fill(~marked(n), -torch.inf)),
    "offsets in CSR form": lambda n: (n, torch.cat([torch.zeros(1, dtype=n.dtype), n.cumsum(0)])),
    "begins": lambda n: (n, n.cumsum(0) - n),
    "ends": lambda n: (n.int(), n.cumsum(0)),
}


@pytest.mark.parametrize("make", FOLLOWS.values(), ids=FOLLOWS.keys())
@pytest.mark.parametrize("count", [1, 3])
def test_only_the_problem_draws_lengths_and_what_follows_from_them(make, count):
    assert found(lambda: make(lengths()), count) == ([0, 1], ())


@pytest.mark.parametrize(
    "make",
    [
        lambda: (lengths(), torch.rand(8, 32) > 0.5),
        lambda: (torch.full((8,), 32), torch.randn(8, 32)),
        lambda: (lengths(), torch.randn(8, 32).masked_fill(~marked(lengths()), 0)),
    ],
)
def test_other_inputs_beside_lengths_stay_free(make):
    frozen, _ = found(make)
    assert 1 not in frozen


@pytest.mark.parametrize("count", [1, 3])
def test_padded_tokens_keep_their_padding_and_are_free_otherwise(count):
    def padded():
        n = lengths()
        return n, torch.randint(1, 500, (8, 32)) * marked(n)

    drawn = draws(padded, count)
    structures = [structure_of(row) for row in zip(*(d.args for d in drawn), strict=True)]
    assert related(drawn, structures) == ()
    assert [s.frozen for s in structures] == [True, False]
    other, tokens = vary(drawn[0], structures, 0).args
    assert torch.equal(other, drawn[0].args[0])
    assert torch.equal((tokens != 0).sum(-1), other)
    assert not torch.equal(tokens, drawn[0].args[1])


def test_where_an_order_is_broken_the_problem_s_own_numbers_stay():
    [own] = draws(ends, 1)
    drawn = Inputs((torch.randint(0, 99, (32,)), torch.randint(0, 99, (32,))), {})
    low, high = in_order(drawn, own, (OrderedPair(0, 1, strict=True),)).args
    legal = drawn.args[0] < drawn.args[1]
    assert 0 < int(legal.sum()) < 32
    for kept, new, old in zip((low, high), drawn.args, own.args, strict=True):
        assert torch.equal(kept, torch.where(legal, new, old))


def test_an_order_of_three_stays_one():
    def three():
        low, middle = ends()
        return low, middle, middle + torch.randint(1, 50, (32,))

    drawn = draws(three)
    structures = [structure_of(row) for row in zip(*(d.args for d in drawn), strict=True)]
    orders = related(drawn, structures)
    for seed in range(20):
        low, middle, high = vary(drawn[0], structures, seed, orders).args
        assert bool((low < middle).all())
        assert bool((middle < high).all())
