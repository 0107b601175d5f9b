"""Recipes compute anew what the tape saw."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.propose.compiler.tape import Tape, literal

OPERATIONS = {
    "sum": lambda a, b: a + b,
    "product": lambda a, b: a * b,
    "transposed": lambda a, b: a.t().contiguous() - b,
    "in place": lambda a, b: a.clone().mul_(b),
    "parts": lambda a, b: torch.max(torch.stack([a, b]), dim=0)[0],
    "halves": lambda a, b: torch.cat(torch.chunk(a, 2) + torch.chunk(b, 2))[:4],
    "made": lambda a, b: a @ torch.eye(4) + torch.full((4, 4), float("inf")).isinf() * b,
}


@given(names=st.lists(st.sampled_from(sorted(OPERATIONS)), min_size=1, max_size=6))
def test_recipe_gives_the_same_tensor_for_other_weights(names: list[str]) -> None:
    def compute(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        for name in names:
            first, second = second, OPERATIONS[name](first, second)
        return second

    roots = [torch.randn(4, 4), torch.randn(4, 4)]
    with Tape(roots) as tape:
        wanted = compute(*roots)
    lines, (result,) = tape.recipe({id(roots[0]): "first", id(roots[1]): "second"}, [wanted])
    others = [torch.randn(4, 4), torch.randn(4, 4)]
    scope = {"torch": torch, "first": others[0], "second": others[1]}
    exec("\n".join(lines), scope)  # nothing but torch operators
    torch.testing.assert_close(eval(result, scope), compute(*others))


def test_leaves_random_numbers_and_strangers_alone() -> None:
    root, stranger = torch.ones(3), torch.ones(3)
    with Tape([root]) as tape:
        random = root + torch.rand(3)
        strange = root + stranger
        known = root * 2
    assert tape.knows(known)
    assert not tape.knows(random)
    assert not tape.knows(strange)
    assert id(root) in tape.roots_of([known])


@pytest.mark.parametrize(
    "value",
    [
        [1, 2.5, None, True],
        (3, "text"),
        float("-inf"),
        torch.channels_last,
        torch.bfloat16,
        torch.strided,
        torch.device("cpu"),
        (),
    ],
)
def test_literals_read_back(value: object) -> None:
    assert eval(literal(value, {}), {"torch": torch}) == value
