import textwrap

import pytest
import torch

from adaexplore.core.problem import Workload
from adaexplore.evaluate.truth.given.inputs import InputSets, vary
from adaexplore.evaluate.truth.given.structure import Structure, structure_of
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import Inputs, tensors_of

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x, index, flag, scale, more):
        return x

def get_inputs():
    return [
        torch.rand(64, 64),
        torch.randint(5, (64,)),
        torch.rand(64) > 0.5,
        0.25,
        {"deep": torch.rand(16, dtype=torch.float64)},
    ]
"""
FLOATS = (0, 3)  # among the tensors


@pytest.fixture
def sets(tmp_path):
    def sets(seed=0):
        instance = Instance.load(
            textwrap.dedent(PROBLEM),
            "Model",
            device="cpu",
            seed=seed,
            mode="as-built",
            folder=tmp_path,
        )
        return {s.name: s for s in InputSets(instance, seed)}

    return sets


def floats(input_set):
    return [t for t in tensors_of(input_set.inputs) if t.is_floating_point()]


class TestInputSets:
    def test_own_seeds_and_distributions_alternate(self, sets):
        named = sets()
        assert [(name, s.from_problem) for name, s in named.items()] == [
            *(("own-0", True), ("normal", False), ("own-1", True), ("large", False)),
            *(("own-2", True), ("sparse", False), ("negative", False)),
            *(("constant-rows", False), ("small", False)),
        ]

    def test_no_two_sets_are_alike(self, sets):
        seen = [t[0] for t in map(floats, sets().values())]
        for i, left in enumerate(seen):
            assert not any(torch.equal(left, right) for right in seen[i + 1 :])

    def test_the_same_seed_gives_the_same_sets(self, sets):
        for one, other in zip(sets(3).values(), sets(3).values(), strict=True):
            pairs = zip(tensors_of(one.inputs), tensors_of(other.inputs), strict=True)
            assert all(torch.equal(left, right) for left, right in pairs)

    def test_another_seed_gives_others(self, sets):
        assert not torch.equal(floats(sets(0)["own-0"])[0], floats(sets(9)["own-0"])[0])

    def test_shapes_dtypes_and_what_is_no_tensor_stay(self, sets):
        named = sets()
        form = [(t.shape, t.dtype) for t in tensors_of(named["own-0"].inputs)]
        for input_set in named.values():
            assert [(t.shape, t.dtype) for t in tensors_of(input_set.inputs)] == form
            assert input_set.inputs.args[3] == 0.25

    def test_integers_and_booleans_stay_as_the_problem_draws_them(self, sets):
        for input_set in sets().values():
            _, index, flag, *_ = tensors_of(input_set.inputs)
            assert 0 <= int(index.min()) <= int(index.max()) < 5
            assert flag.dtype == torch.bool

    def test_the_distributions_are_what_they_are_called(self, sets):
        named = sets()
        for t in floats(named["normal"]):
            assert bool((t < 0).any())
        for t in floats(named["large"]):
            assert float(t.abs().max()) > 5
        for t in floats(named["negative"]):
            assert bool((t <= 0).all())
        for t in floats(named["sparse"]):
            assert 0.1 < float((t == 0).double().mean()) < 0.9


class TestCaptured:
    """Captured inputs are the same under every seed: other own sets are variations of them."""

    @pytest.fixture
    def captured(self, sets, tmp_path):
        generator = torch.Generator().manual_seed(0)
        values = {
            "x": torch.randn(16, 8, generator=generator),
            "tokens": torch.randint(0, 50, (4, 16), generator=generator),
            "lengths": torch.tensor([3, 1, 2]),
            "mask": torch.ones(4, 16, dtype=torch.int64),
        }
        torch.save({"args": [], "kwargs": values}, tmp_path / "captured.pt")
        workload = Workload("captured", file=str(tmp_path / "captured.pt"))
        instance = Instance.load(
            PROBLEM, "Model", device="cpu", seed=0, mode="as-built", folder=tmp_path
        )
        return values, list(InputSets(instance, 0, workload))

    def test_the_first_set_is_as_it_was_captured(self, captured):
        values, (first, *_) = captured
        assert (first.from_problem, first.varied) == (True, False)
        assert all(torch.equal(first.inputs.kwargs[name], t) for name, t in values.items())

    def test_the_others_hold_other_numbers_of_the_same_kind(self, captured):
        values, input_sets = captured
        own = [s for s in input_sets if s.from_problem]
        assert [s.varied for s in own] == [False, True, True]
        for other in own[1:]:
            found = other.inputs.kwargs
            ratio = found["x"] / values["x"]
            scaled = (ratio.abs() >= 0.5) & (ratio.abs() <= 1.5)
            assert 0.8 < float(scaled.double().mean()) < 1  # the others are other numbers
            assert 0.3 < float((ratio < 0).double().mean()) < 0.7
            assert not torch.equal(found["tokens"], values["tokens"])
            assert torch.isin(found["tokens"], values["tokens"]).all()
            assert not torch.equal(  # a multiset is no key to an answer
                found["tokens"].flatten().sort()[0], values["tokens"].flatten().sort()[0]
            )
        assert not torch.equal(own[1].inputs.kwargs["x"], own[2].inputs.kwargs["x"])

    def test_what_may_be_lengths_or_a_mask_stays(self, captured):
        values, input_sets = captured
        for each in input_sets:
            assert torch.equal(each.inputs.kwargs["lengths"], values["lengths"])
            assert torch.equal(each.inputs.kwargs["mask"], values["mask"])

    def test_zeros_of_an_example_are_chance(self, tmp_path):
        x = torch.randn(16, 8)
        x[:, 4:] = 0
        torch.save({"args": [x], "kwargs": {}}, tmp_path / "captured.pt")
        workload = Workload("captured", file=str(tmp_path / "captured.pt"))
        instance = Instance.load(
            PROBLEM, "Model", device="cpu", seed=0, mode="as-built", folder=tmp_path
        )
        for name, found in ((s.name, s.inputs.args[0]) for s in InputSets(instance, 0, workload)):
            padded = bool((found[:, 4:] == 0).all())  # scaled zeros are zeros
            assert padded == (name == "sparse" or name.startswith("own")), name


def test_integers_alone_get_another_order_even_if_they_might_be_lengths():
    tokens, ones = torch.tensor([[7, 1, 9, 4, 8]]), torch.ones(1, 5, dtype=torch.int64)
    frozen = [Structure(frozen=True)] * 2
    for seed in range(9):
        varied, mask = vary(Inputs([tokens, ones]), frozen, seed).args
        assert torch.equal(mask, ones)
        assert torch.equal(varied.sort().values, tokens.sort().values)
        if not torch.equal(varied, tokens):
            return
    raise AssertionError("the order never changed")


def test_offsets_stay_where_they_are():
    inputs = Inputs([torch.tensor([7, 1, 9, 4, 8]), torch.tensor([0, 2])])
    varied = vary(inputs, [Structure(frozen=True)] * 2, 3)
    assert all(torch.equal(a, b) for a, b in zip(varied.args, inputs.args, strict=True))


@pytest.mark.parametrize(
    "make",
    [
        lambda g: torch.rand(8, 8, generator=g).tril(),
        lambda g: torch.rand(8, 8, generator=g).softmax(-1),
        lambda g: torch.nn.functional.normalize(torch.randn(8, 8, generator=g), dim=-1),
        lambda g: torch.rand(64, 64, generator=g) + 3,
        lambda g: torch.rand(8, 4, generator=g).T,
        lambda g: torch.randint(9, (8, 4), generator=g).T,
    ],
)
def test_a_variation_keeps_the_structure(make):
    t = make(torch.Generator().manual_seed(1))
    structure = structure_of([t])
    [varied] = vary(Inputs([t]), [structure], seed=3).args
    [same] = vary(Inputs([t]), [structure], seed=3).args
    assert not torch.equal(varied, t)
    assert torch.equal(varied, same)
    assert (varied.shape, varied.dtype, varied.stride()) == (t.shape, t.dtype, t.stride())
    kept = structure_of([varied])
    assert (kept.frozen, kept.unit) == (structure.frozen, structure.unit)
    assert structure.unit or (kept.least is None) == (structure.least is None)
    if structure.zeros is not None:
        assert torch.equal(varied == 0, structure.zeros)


def test_some_sets_hold_what_is_alike_along_time_and_whole_rows_of_zeros(tmp_path):
    source = PROBLEM.replace("torch.rand(64, 64)", "torch.randn(4, 32, 16)")
    instance = Instance.load(
        source, "Model", device="cpu", seed=0, mode="as-built", folder=tmp_path
    )
    named = {s.name: s.inputs.args[0] for s in InputSets(instance, 0)}
    held = named["held"]
    assert torch.equal(held, held[:, :1].expand(4, 32, 16))
    assert held[:, 0].unique().numel() == 4 * 16
    assert float(held.abs().max()) > 10
    rows = (named["sparse"] == 0).all(-1)
    assert bool(rows.any())
    assert not bool(rows.all())


def test_inputs_without_inner_axes_have_no_set_that_is_alike_along_them(sets):
    assert "held" not in sets()


def test_of_draws_that_no_seed_repeats_the_first_stands_for_all(tmp_path):
    source = PROBLEM.replace("torch.rand(64, 64)", "torch.rand(64, 64, generator=G)")
    assert source != PROBLEM
    source = "import torch\nG = torch.Generator()\n" + textwrap.dedent(source)
    instance = Instance.load(
        source, "Model", device="cpu", seed=0, mode="as-built", folder=tmp_path
    )
    found = InputSets(instance, 0)
    assert found.unseeded
    once, again = ([tensors_of(s.inputs) for s in found] for _ in range(2))
    for one, other in zip(once, again, strict=True):
        assert all(map(torch.equal, one, other))
    own = [s for s in found if s.from_problem]
    assert [s.varied for s in own] == [False, True, True]
    assert not torch.equal(own[0].inputs.args[0], own[1].inputs.args[0])


def test_draws_that_a_seed_repeats_are_drawn(sets):
    assert not any(s.varied for s in sets().values())
