"""Runs of operations that no module bounds: found, captured, and replaced by kernels."""

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from small_models import Cache, Gated, Growing, RmsNorm
from torch import nn

from adaexplore.core.problem import Checks
from adaexplore.model.calls import calls_of
from adaexplore.model.cuts import in_place
from adaexplore.model.cutting import cut_forwards
from adaexplore.model.placements import Placements
from adaexplore.model.put_back import GroupWinner, put_back
from adaexplore.model.rank import CaptureOptions, rank_model, recapture
from adaexplore.model.seen import look
from adaexplore.package.describe import describe_kernel
from adaexplore.package.imported import import_kernel
from adaexplore.runtime.cuts import CutForward

RUN = "mul_add_mlp_norm_2_more"


def cuts_of(model, inputs):
    """Return the cut forwards of a model by their paths."""
    calls = calls_of(inputs)
    with torch.no_grad():
        return cut_forwards(model.eval(), calls, look(model, calls))


def runs_of(model, inputs):
    return {path: list(cut.runs) for path, cut in cuts_of(model, inputs).items()}


@pytest.fixture(scope="module")
def ranked(tmp_path_factory):
    """A model of which no layer is a problem, its calls, and its ranking."""
    torch.manual_seed(0)
    model = Growing().eval()
    calls = calls_of(model.calls())
    options = CaptureOptions(tmp_path_factory.mktemp("ranked"), Checks("fp32"))
    before = [dict(vars(module)) for module in model.modules()]
    found = rank_model(model, calls, options)
    assert [dict(vars(module)) for module in model.modules()] == before
    return model, calls, found


@pytest.fixture(scope="module")
def kernel(ranked, tmp_path_factory):
    """The captured run as a kernel."""
    _, _, found = ranked
    problem = found.problems[f"Residual_{RUN}"].captured.problem
    source = problem.source.replace("class Model(", "class ModelNew(")
    folder = tmp_path_factory.mktemp("kernels")
    return import_kernel(describe_kernel(problem, source, "run", folder), folder)


@pytest.fixture
def placed(ranked, kernel):
    """A copy of the model with the kernel in its layers, and the original."""
    original, _, found = ranked
    model = copy.deepcopy(original)
    placements = Placements(model)
    placements.add("run", kernel, found.problems[f"Residual_{RUN}"].homes)
    placements.put(["run"])
    kernel.reset_refusals()
    return model, placements, copy.deepcopy(original)


def outputs(model, length=12):
    torch.manual_seed(1)
    caches = [Cache() for _ in model.layers]
    with torch.no_grad():
        first = model(torch.rand(2, length, 32), caches)
        return first, model(torch.rand(2, 1, 32), caches)


def assert_same(model, original, length=12):
    torch.testing.assert_close(outputs(model, length), outputs(original, length))


def test_a_run_of_equal_layers_is_one_problem_and_its_parts_are_none(ranked):
    _, _, found = ranked
    groups = {path: group for group in found.ranking.groups for path in group.paths}
    run = groups[f"layers.0.{RUN}"]
    assert run.is_chosen
    assert run.paths == (f"layers.0.{RUN}", f"layers.1.{RUN}")
    assert run.calls == 4
    assert run.share > groups["layers.0.mlp"].share
    assert "overlaps with Residual_" in groups["layers.0.mlp"].reason
    assert groups["layers.0.norm"].paths == ("layers.0.norm", "layers.1.norm")
    assert "of type Cache" in groups["layers.0"].reason
    [problem] = [one for one in found.problems.values() if one.group.paths == run.paths]
    assert len(problem.captured.problem.workloads) == 2
    assert sum(group.share for group in found.ranking.chosen) < 1


def test_a_ranking_is_captured_again_with_its_runs(ranked, tmp_path):
    model, calls, found = ranked
    again = recapture(model, calls, found.ranking, CaptureOptions(tmp_path, Checks("fp32")))
    name = f"Residual_{RUN}"
    sources = [each.problems[name].captured.problem.source for each in (again, found)]
    assert sources[0] == sources[1]
    assert again.problems[name].homes == ("layers.0", "layers.1")


def test_a_kernel_stands_for_a_run_with_the_weights_of_each_layer(placed):
    model, placements, original = placed
    assert placements.count("run") == 2
    ran = placements.runs
    assert_same(model, original)
    assert placements.runs == ran + 4
    assert placements.refusals == {}
    for each in (model, original):
        each.layers[0].mlp.up.weight.data.mul_(2)
        each.layers[1].scale.data.mul_(3)
    assert_same(model, original)
    assert placements.runs == ran + 8
    assert list(model.state_dict()) == list(original.state_dict())
    placements.put(())
    assert not any("forward" in vars(module) or RUN in vars(module) for module in model.modules())


def test_other_shapes_run_the_original_operations(placed):
    model, placements, original = placed
    ran = placements.runs
    assert_same(model, original, length=5)
    assert placements.runs == ran + 2
    assert any("2x5x32" in reason for reason in placements.refusals)


def wrapped(layer):
    layer.mlp = nn.Sequential(layer.mlp, nn.Tanh())


def hooked(layer):
    layer.mlp.down.register_forward_hook(lambda *given: given[-1] + 1)


def doubled(layer):
    layer.mlp.forward = lambda x: 2 * x


@pytest.mark.parametrize("change", [wrapped, hooked, doubled])
def test_a_layer_that_was_changed_runs_what_it_has_now(placed, change):
    model, placements, original = placed
    for each in (model, original):
        change(each.layers[1])
    ran = placements.runs
    assert_same(model, original)
    assert placements.runs == ran + 2
    assert placements.refusals


def test_gradients_and_training_are_those_of_the_original(placed):
    model, _, original = placed
    x = torch.rand(2, 12, 32)
    for each in (model, original):
        each.train()
        each(x, [None] * 2).sum().backward()
    for one, other in zip(model.parameters(), original.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_copies_and_pickles_keep_the_kernel(placed):
    model, placements, original = placed
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        again.layers[0].mlp.up.weight.data.mul_(2)
        changed = copy.deepcopy(original)
        changed.layers[0].mlp.up.weight.data.mul_(2)
        ran = placements.runs
        assert_same(again, changed)
        assert placements.runs == ran + 4


class Tails(nn.Module):
    """A block with a tail of element-wise operations behind a branch on a number of its input."""

    def __init__(self, body):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.inner = Gated(8)
        self.body = body
        self.inner.register_forward_hook(lambda *_: None)  # so that the whole is no problem

    def forward(self, x):
        return self.body(self, x)


def tail(self, x):
    return F.silu(self.inner(self.norm(x))) * x


def of_sizes(self, x):
    rows, width = x.shape
    return (self.inner(x).view(rows, 2, width // 2) + 1).sin().reshape(rows, width)


def branching(self, x):
    return self.inner(x).sin().cos() if x.sum() > 0 else x


def making(self, x):
    return (self.inner(x) + torch.ones(8)).sin()


def counting(self, x):
    self.norm.calls = getattr(self.norm, "calls", 0) + 1
    return (self.inner(x) * self.norm.calls).sin()


def writing(self, x):
    y = self.inner(x)
    z = y.sin().cos()
    y.add_(1)
    return (z + y).exp()


@pytest.mark.parametrize(
    ("body", "runs"),
    [
        (tail, ["silu_mul"]),
        (of_sizes, ["add_sin"]),
        (branching, []),
        (making, []),
        (counting, []),
        (writing, ["sin_cos", "add_exp"]),
    ],
)
def test_runs_are_found_where_the_graph_gives_the_outputs(body, runs):
    found = runs_of(nn.Sequential(Tails(body)), [(torch.rand(4, 8),)])
    assert found.get("0", []) == runs


def reaching(self, x):
    return self.inner.gate(x).sin()


def test_a_module_deep_inside_a_run_may_be_replaced():
    model, x = nn.Sequential(Tails(reaching)), torch.rand(4, 8)
    [cut] = cuts_of(model, [(x,)]).values()
    assert list(cut.runs) == ["gate_sin"]
    model[0].inner.gate = nn.Linear(8, 16)
    with torch.no_grad(), in_place([cut]):
        torch.testing.assert_close(model(x), model[0].inner.gate(x).sin())


class Optional(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.scale = 2.0

    def forward(self, x, mask=None, *, more=1):
        y = self.inner(x).sin() * self.scale + more
        return y if mask is None else y * mask


def test_a_forward_that_was_replaced_on_the_object_stays():
    model = Optional()
    model.forward = lambda x: model.inner(x).sin().cos()
    assert cuts_of(model, [(torch.rand(4, 8),)]) == {}


def test_layers_of_a_kind_are_in_no_run():
    layers = nn.Sequential(Gated(8), Gated(8), RmsNorm(8), nn.Linear(8, 4))
    assert runs_of(layers, [(torch.rand(4, 8),)]) == {"": ["rmsnorm_linear"]}


def test_a_cut_forward_stands_for_the_kinds_of_calls_that_it_saw():
    model = Optional()
    x, mask = torch.rand(4, 8), torch.rand(4, 1)
    [cut] = cuts_of(model, [(x,), (x, mask)]).values()
    assert isinstance(cut, CutForward)
    own = type(model).forward
    with torch.no_grad(), in_place([cut]):
        for args, kwargs in (((x,), {}), ((x,), {"mask": mask}), ((x, None), {"more": 1})):
            torch.testing.assert_close(model(*args, **kwargs), own(model, *args, **kwargs))
            assert cut.chosen(args, kwargs)[1] == ""
        torch.testing.assert_close(model(x, more=3), own(model, x, more=3))
        assert "other kinds of arguments" in cut.chosen((x,), {"more": 3})[1]
        model.scale = 3.0
        torch.testing.assert_close(model(x), own(model, x))
        assert cut.chosen((x,), {})[1] == "its Optional has another scale"
    assert "forward" not in vars(model)


@pytest.mark.slow
def test_a_compiled_model_has_the_kernel_in_one_graph(placed):
    model, placements, original = placed
    x = torch.rand(2, 12, 32)
    ran = placements.runs
    with torch.no_grad():
        found = torch.compile(model, fullgraph=True)(x, [Cache(), Cache()])
        torch.testing.assert_close(found, original(x, [Cache(), Cache()]))
    assert placements.runs == ran + 2
    assert placements.refusals == {}


@pytest.mark.slow
def test_a_model_with_a_kernel_for_a_run_is_compared_and_timed(ranked, tmp_path):
    model, calls, found = ranked
    problem = found.problems[f"Residual_{RUN}"]
    source = problem.captured.problem.source.replace("class Model(", "class ModelNew(")
    wrong = source.replace("return ", "return 2 * ", 1)
    winners = {"wrong": GroupWinner(problem, wrong), "same": GroupWinner(problem, source)}
    outcome, _ = put_back(model, calls, winners, precision="fp32", folder=tmp_path)
    wrong, same = outcome.replacements
    assert "wrong by" in wrong.reason
    assert same.modules == 2
    assert same.reason in ("", "the model is not clearly faster with it")
    assert not any("forward" in vars(module) for module in model.modules()) or same.is_kept
