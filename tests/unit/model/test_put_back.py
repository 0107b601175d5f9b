"""Winners in the place of a model's modules: kept where the model is right and faster."""

import copy
import time

import pytest
import torch
from small_models import Encoder
from torch import nn

from adaexplore.core.problem import Checks
from adaexplore.model.calls import calls_of
from adaexplore.model.placements import Placements
from adaexplore.model.put_back import GroupWinner, put_back
from adaexplore.model.rank import CaptureOptions, rank_model
from adaexplore.package.describe import describe_kernel
from adaexplore.package.imported import import_kernel

KERNEL = """
import time
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(16))

    def forward(self, x):
        {work}
        return x.sin() * self.scale + {more}
"""


def kernel(work="pass", more="0"):
    return KERNEL.format(work=work, more=more)


class Slow(nn.Module):
    """A block that waits, which is in no graph."""

    def __init__(self, wait_s):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(16))
        self.wait = [wait_s]

    def forward(self, x):
        _sleep(self.wait)
        return x.sin() * self.scale


@torch.compiler.disable
def _sleep(wait):
    time.sleep(wait[0])


class Model(nn.Module):
    def __init__(self, wait_s=2e-3):
        super().__init__()
        self.blocks = nn.ModuleList(Slow(wait_s) for _ in range(2))
        self.head = nn.Linear(16, 16)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


CALLS = [(torch.rand(4, 16),), (torch.rand(2, 16),)]


@pytest.fixture
def put(tmp_path):
    """Put a kernel back into a model."""

    def put(model, source, more=()):
        options = CaptureOptions(tmp_path, Checks("fp32"))
        problems = rank_model(model, calls_of(CALLS), options).problems
        calls = calls_of([*CALLS, *more])
        [name] = [name for name, one in problems.items() if one.group.paths[0] == "blocks.0"]
        winners = {name: GroupWinner(problems[name], source)}
        return put_back(model, calls, winners, precision="fp32", folder=tmp_path / "kernels")

    return put


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Model().eval()


def outputs(model):
    with torch.no_grad():
        return model(*CALLS[0])


def test_a_faster_kernel_stays_with_the_weights_of_each_module_and_is_undone(put, model):
    before, state = outputs(model), copy.deepcopy(model.state_dict())
    outcome, placements = put(model, kernel())
    [kept] = outcome.kept
    assert kept.modules == 2
    assert kept.brought == outcome.speedup
    assert outcome.speedup.low > 1
    assert {"eager", "compile"} == set(outcome.calls[0].before_us)
    assert outcome.calls[0].error <= 4 * outcome.calls[0].own_error
    torch.testing.assert_close(outputs(model), before)
    ran = placements.runs
    assert ran > 0
    with torch.no_grad():
        model(torch.rand(3, 16))  # of another shape: the original runs where nothing was verified
    assert placements.runs == ran
    assert placements.refusals == {"not verified for inputs of 3x16 float32 on cpu": 2}
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    placements.put(())
    assert "forward" not in vars(model.blocks[0])
    assert torch.equal(outputs(model), before)


def test_a_call_in_which_no_kernel_runs_has_the_times_of_the_original(put, model):
    outcome, _ = put(model, kernel(), more=[(torch.rand(3, 16),)])
    assert outcome.speedup.low > 1
    *_, other = outcome.calls
    assert 0.2 < other.time_us / min(other.before_us.values()) < 5


def test_a_kernel_by_which_the_model_is_not_faster_is_taken_out(put):
    model = Model(wait_s=1e-4).eval()
    outcome, _ = put(model, kernel("time.sleep(3e-3)"))
    assert outcome.replacements[0].reason == "the model is not clearly faster with it"
    assert outcome.replacements[0].brought.high < 1
    assert outcome.speedup.median == 1
    assert "forward" not in vars(model.blocks[0])


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (kernel(more="1e-5"), "outputs on unseen inputs are wrong by"),
        (kernel(work="raise RuntimeError('no')"), "its kernel raised RuntimeError: no"),
        (
            kernel().replace("torch.ones(16)", "torch.ones(nothing)"),
            "the kernel cannot be built: name 'nothing'",
        ),
    ],
)
def test_a_wrong_kernel_is_taken_out(put, model, source, reason):
    before = outputs(model)
    outcome, placements = put(model, source)
    assert reason in outcome.replacements[0].reason
    assert not placements.names
    assert torch.equal(outputs(model), before)


@pytest.mark.slow
def test_modules_that_compute_something_else_keep_the_original(put, model):
    model.blocks[0].function = torch.sin
    model.blocks[1].function = torch.cos
    model.blocks[0].__class__ = model.blocks[1].__class__ = Other
    before = outputs(model)
    outcome, _ = put(model, kernel())
    assert outcome.kept[0].modules == 1
    assert "forward" not in vars(model.blocks[1])
    torch.testing.assert_close(outputs(model), before)


class Other(Slow):
    """Blocks whose function is an attribute."""

    function = torch.sin

    def forward(self, x):
        _sleep(self.wait)
        return self.function(x) * self.scale


@pytest.fixture
def two_kinds(tmp_path):
    """A model with calls of two kinds, kernels for both, and the original outputs."""
    model = Encoder().eval()
    x, mask = torch.rand(2, 6, 32), torch.rand(2, 6)
    calls = calls_of({"plain": (x,), "masked": {"x": x, "mask": mask}})
    expected = [call.copied().run(model).last for call in calls]
    ranked = rank_model(model, calls, CaptureOptions(tmp_path / "modules", Checks("fp32")))
    placements = Placements(model)
    for name in ("Block", "Block-2"):
        problem = ranked.problems[name].captured.problem
        source = problem.source.replace("class Model(", "class ModelNew(")
        described = describe_kernel(problem, source, name.replace("-", "_"), tmp_path)
        placements.add(name, import_kernel(described, tmp_path), ranked.problems[name].group.paths)
    return model, calls, placements, expected


def test_kernels_for_two_kinds_of_calls_are_chosen_by_the_form_of_a_call(two_kinds):
    model, calls, placements, expected = two_kinds
    ran = placements.runs
    for names, runs in ((("Block", "Block-2"), 6), (("Block",), 3), (("Block-2",), 3), ((), 0)):
        with placements.only(names):
            again = copy.deepcopy(model)
            for each in (model, again):
                found = [call.copied().run(each).last for call in calls]
                torch.testing.assert_close(found, expected)
            if len(names) == 2:
                assert placements.refusals == {}
        assert placements.runs == ran + 2 * runs
        ran = placements.runs
    assert not any("forward" in vars(module) for module in model.modules())


@pytest.mark.slow
def test_a_compiled_model_chooses_the_kernel_for_a_kind_of_calls_too(two_kinds):
    model, calls, placements, expected = two_kinds
    with placements.only(placements.names):
        compiled = torch.compile(model, fullgraph=True)
        for call, output in zip(calls, expected, strict=True):
            ran = placements.runs
            torch.testing.assert_close(call.copied().run(compiled).last, output)
            assert placements.runs == ran + 3
    assert placements.refusals == {}
