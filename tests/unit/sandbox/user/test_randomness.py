import random

import numpy
import pytest
import torch
import torch.nn.functional as F

from adaexplore.sandbox.user.randomness import draws_random, seeded

X = torch.randn(4, 8)
CPU = torch.device("cpu")


def seeds_itself():
    torch.manual_seed(7)
    return X * torch.rand(4, 1)


@pytest.mark.parametrize(
    ("call", "is_random"),
    [
        (lambda: X * 2, False),
        (lambda: F.dropout(X, 0.0, training=True), False),
        (seeds_itself, False),
        (lambda: X + 1e-12 * F.dropout(X, 0.5, training=True), True),
        (lambda: X if random.random() < 0.999 else -X, True),
        (lambda: X + numpy.random.random(), True),
    ],
)
def test_random_numbers_are_seen_by_their_generators(call, is_random):
    assert draws_random(call, torch.device("cpu")) == is_random


def test_both_calls_have_seeds_of_their_own():
    drawn = []
    for _ in range(2):
        torch.rand(3)
        random.random()
        draws_random(lambda: drawn.append((torch.rand(1).item(), random.random())), CPU)
    assert drawn[:2] == drawn[2:]
    assert drawn[0] != drawn[1]


def test_every_seed_gives_numpy_numbers_of_its_own():
    drawn = set()
    for seed in (0, 1, 2, 3, 2**32 + 4):
        with seeded(CPU, seed):
            drawn.add(numpy.random.random())
    assert len(drawn) == 5


class Holder:
    def __init__(self, generator):
        self.generator = generator


@pytest.mark.parametrize(
    ("generator", "draw"),
    [
        (torch.Generator(), lambda own: torch.rand(1, generator=own).item()),
        (random.Random(3), lambda own: own.random()),
        (numpy.random.default_rng(3), lambda own: own.random()),
        (numpy.random.RandomState(3), lambda own: own.random()),
    ],
)
def test_generators_that_a_module_keeps_are_looked_at(generator, draw):
    holders = [Holder("something else"), Holder(generator)]
    device = torch.device("cpu")
    assert draws_random(lambda: X + 1e-12 * draw(generator), device, holders)
    assert not draws_random(lambda: X * 2, device, holders)


def test_a_generator_that_is_seeded_in_each_call_draws_the_same():
    holder = Holder(torch.Generator())

    def call():
        return X * torch.rand(1, generator=holder.generator.manual_seed(5))

    assert not draws_random(call, torch.device("cpu"), [holder])
