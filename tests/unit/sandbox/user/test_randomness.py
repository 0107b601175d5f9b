import random

import numpy
import pytest
import torch
import torch.nn.functional as F

from adaexplore.sandbox.user.randomness import draws_random

X = torch.randn(4, 8)


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
