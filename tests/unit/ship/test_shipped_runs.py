"""Kernels for runs of operations as packages, also for two runs in the forward of one module."""

import copy
import importlib
import importlib.util
import inspect
import itertools
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import small_models
import torch
from shipped_blocks import record
from small_models import Cache, Gated, Steps
from torch import nn

from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Checks
from adaexplore.model.calls import calls_of
from adaexplore.model.placements import Placements
from adaexplore.model.rank import CaptureOptions, rank_model
from adaexplore.package.describe import CUTS, describe_kernel
from adaexplore.package.files import write_python_package
from adaexplore.package.imported import import_kernel
from adaexplore.problems.captured import CAPTURED
from adaexplore.problems.live import INTERFACE
from adaexplore.ship.ship import ship
from adaexplore.ship.trial import Trial, WorkloadTrial

RUNS = ("mul_norm_sin", "mul_add_mlp_norm_2_more")
LAYERS = ("layers.0", "layers.1")
TRIAL = Trial("", "", "", (WorkloadTrial("2x12x32", 0.0, 1.0, 1.0, 1.0),))
ALONE = """
import pickle, sys
from small_models import Steps
import first_run
with open(sys.argv[1], "rb") as file:
    model, args, expected = pickle.load(file)
import torch
with torch.no_grad():
    torch.testing.assert_close(model(*args), expected)
print(first_run.runs(), first_run.undo(model), first_run.apply(Steps().eval()).modules)
"""


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    """The runs of a small model as problems."""
    torch.manual_seed(0)
    model = Steps().eval()
    options = CaptureOptions(tmp_path_factory.mktemp("ranked"), Checks("fp32"))
    ranked = rank_model(model, calls_of(model.calls()), options)
    return [ranked.problems[f"Step_{run}"].captured.problem for run in RUNS]


def source_of(problem):
    return problem.source.replace("class Model(", "class ModelNew(")


def recorded(problem, path):
    """Record the run of a search in a model's run."""
    file = Path(problem.access.file).with_name(CAPTURED)
    record(str(file), path, source_of(problem))
    return path


@pytest.fixture(scope="module")
def packages(problems, tmp_path_factory):
    """A package for each run: one shipped, one of the Python files alone of an older search."""
    first, second = problems
    interface = Path(second.access.file).with_name(INTERFACE)
    data = json.loads(interface.read_text())
    data["layers"][0]["code"] = "of an older version"
    interface.write_text(json.dumps(data))
    folder = tmp_path_factory.mktemp("packages")
    run = recorded(first, folder / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adaexplore.ship.ship.run_trial", lambda *_: TRIAL)
        ship(run, folder / "package", name="first_run", hub=folder / "hub")
    home = folder / "package/src/second_run"
    home.mkdir()
    write_python_package(describe_kernel(second, source_of(second), home.name, folder), home)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(home.parent))
        yield importlib.import_module("first_run"), importlib.import_module("second_run")


@pytest.fixture
def kernel(packages):
    """The shipped package."""
    packages[0].reset_refusals()
    return packages[0]


@pytest.fixture
def plain():
    torch.manual_seed(3)
    return Steps().eval()


@pytest.fixture
def fast(kernel, plain):
    """The model with the kernel in both layers."""
    model = copy.deepcopy(plain)
    assert kernel.apply(model).modules == LAYERS
    return model


def arguments():
    torch.manual_seed(1)
    return torch.rand(2, 12, 32), [Cache(), Cache()]


def assert_same(fast, plain, is_graded=False):
    with torch.set_grad_enabled(is_graded):
        torch.testing.assert_close(fast(*arguments()), plain(*arguments()))


def attributes(model):
    return [dict(vars(module)) for module in model.modules()]


def both(change, *models):
    for model in models:
        change(model)


def test_the_package_names_the_run_and_stands_alone(kernel, fast, tmp_path):
    assert kernel.SPEC.class_name == "Step.mul_norm_sin"
    (tmp_path / "adaexplore.py").write_text("raise ImportError('not here')")
    file = tmp_path / "model.pkl"
    with torch.no_grad():
        file.write_bytes(pickle.dumps((fast, arguments(), fast(*arguments()))))
    home = Path(kernel.__file__).parents[1]
    paths = [tmp_path, home, Path(small_models.__file__).parent]
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(file)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
    )
    assert done.stdout.split("\n")[0] == f"2 {LAYERS} {LAYERS}", done.stderr


@torch.no_grad()
def scale(model):
    for weight in model.parameters():
        weight.data.mul_(3)


def there_and_back(model):
    model.double().float()


def load(model):
    torch.manual_seed(8)
    model.load_state_dict({name: torch.rand_like(t) for name, t in model.state_dict().items()})


def itself(model):
    return model


def unpickled(model):
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("again", [itself, copy.deepcopy, unpickled])
def test_the_kernel_follows_the_model_and_its_copies(again, kernel, fast, plain):
    model = again(fast)
    assert list(model.state_dict()) == list(plain.state_dict())
    for change in (scale, there_and_back, load):
        both(change, model, plain)
        ran = kernel.runs()
        assert_same(model, plain)
        assert kernel.runs() == ran + 2
    assert kernel.refusals() == {}
    assert kernel.undo(model) == LAYERS
    assert attributes(model)[2].keys() == attributes(plain)[2].keys()


def rename(model):
    model.layers[0].layer_idx = 5


def change_child(model):
    model.layers[0].attention.scale = 2.0


def replace_child(model):
    torch.manual_seed(4)
    model.layers[0].mlp = Gated(32)


def hook(model):
    model.layers[0].norm.register_forward_hook(lambda *given: given[-1] + 1)


@pytest.mark.parametrize("change", [rename, change_child, replace_child, hook])
def test_a_changed_module_runs_the_original(change, kernel, fast, plain, caplog):
    both(change, fast, plain)
    ran = kernel.runs()
    for _ in range(2):
        assert_same(fast, plain)
    assert kernel.runs() == ran + 2
    assert list(kernel.refusals().values()) == [2]
    assert len([r for r in caplog.records if r.name == "first_run"]) == 1


def test_other_calls_run_the_original(kernel, fast, plain, monkeypatch):
    assert_same(fast, plain, is_graded=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(fast, plain)
    with torch.no_grad():
        x = torch.rand(2, 12, 32)
        torch.testing.assert_close(fast(x, [None, None]), plain(x, [None, None]))
        torch.testing.assert_close(fast.layers[0](x[:1]), plain.layers[0](x[:1]))
    both(nn.Module.train, fast, plain)
    assert_same(fast, plain)
    both(nn.Module.eval, fast, plain)
    monkeypatch.setattr(small_models.Step, "forward", lambda self, x, cache: x + 1)
    assert_same(fast, plain)
    assert kernel.refusals() == {
        "gradients are enabled": 2,
        "autocast is on": 2,
        "other kinds of arguments than its forward was cut for": 3,
        "it is in training mode": 2,
        "the forward of Step was replaced": 2,
    }


def test_a_compiled_model_has_the_kernel_in_one_graph_or_runs_the_original(kernel, fast, plain):
    graphs = []
    compiled = torch.compile(fast, fullgraph=True, backend=lambda g, _: graphs.append(g) or g)
    torch.compiler.reset()
    assert_same(compiled, plain)
    assert graphs[0].code.count("first_run") == 2
    assert kernel.refusals() == {}
    both(change_child, fast, plain)
    assert_same(compiled, plain)
    assert graphs[1].code.count("first_run") == 1
    assert_same(compiled, plain, is_graded=True)
    assert kernel.refusals() == {
        "its Attention has another scale": 1,
        "gradients are enabled": 2,
    }


@pytest.mark.parametrize("orders", list(itertools.product([1, -1], repeat=2)))
def test_two_packages_share_a_forward_and_leave_in_any_order(orders, packages, plain):
    model = copy.deepcopy(plain)
    before = attributes(model)
    for kernel in packages[:: orders[0]]:
        kernel.reset_refusals()
        assert kernel.apply(model, only=LAYERS).modules == LAYERS
    ran = [kernel.runs() for kernel in packages]
    assert_same(model, plain)
    assert [kernel.runs() for kernel in packages] == [count + 2 for count in ran]
    assert_same(model, plain, is_graded=True)
    assert all(kernel.refusals() == {"gradients are enabled": 2} for kernel in packages)
    first, last = packages[:: orders[1]]
    assert first.undo(model) == LAYERS
    ran = last.runs()
    assert_same(model, plain)
    assert last.runs() == ran + 2
    assert last.undo(model) == LAYERS
    assert attributes(model) == before


def test_a_model_in_this_process_has_both_kernels_in_one_forward(problems, plain, tmp_path):
    model = copy.deepcopy(plain)
    placements = Placements(model)
    for problem in problems:
        described = describe_kernel(problem, source_of(problem), "run", tmp_path)
        placements.add(problem.name, import_kernel(described, tmp_path), LAYERS)
    for names in (placements.names, placements.names[:1], placements.names[1:]):
        ran = placements.runs
        with placements.only(names):
            assert_same(model, plain)
        assert placements.runs == ran + 2 * len(names)
        assert [vars(layer).keys() for layer in model.layers] == [
            vars(layer).keys() for layer in plain.layers
        ]


def test_other_modules_are_left_alone(kernel, plain, tmp_path, monkeypatch):
    source = inspect.getsource(small_models)
    source = source.replace("self.mlp(self.mlp_norm(x + y))", "self.mlp(self.mlp_norm(x - y))")
    (tmp_path / "other_steps.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    left = kernel.apply(importlib.import_module("other_steps").Steps().eval()).left
    assert left["layers.0"] == "layers.0 has other code than verified"
    both(change_child, plain)
    plain.layers[1].layer_idx = 7
    assert kernel.apply(plain, only=["layers.0", "layers.1"]).left == {
        "layers.0": "layers.0.attention has other constants than verified",
        "layers.1": "it has layer_idx 7, its forward was cut for layer_idx 0; layer_idx 1",
    }
    plain.layers[0].forward = lambda *args: args[0]
    assert kernel.apply(plain, only=["layers.0"]).left["layers.0"] == "it has a forward of its own"


def test_undo_refuses_what_others_put_around(kernel, fast):
    inner = fast.layers[0].forward
    fast.layers[0].forward = lambda *args: inner(*args)
    with pytest.raises(RuntimeError, match=r"layers\.0: its forward was replaced after apply"):
        kernel.undo(fast)


def test_a_kernel_that_is_wrong_here_is_not_put_into_a_model(kernel, plain, monkeypatch):
    before = attributes(plain)
    monkeypatch.setattr("first_run.replace.relative_error", lambda *_: 1.0)
    with pytest.raises(kernel.UnusableKernelError, match="is off by"):
        kernel.apply(plain)
    assert attributes(plain) == before


def test_the_layout_of_the_hub_has_the_run(packages, plain, monkeypatch):
    build = Path(packages[0].__file__).parents[3] / "hub/build/torch-cpu"
    name = json.loads((build / "metadata.json").read_text())["id"]
    spec = importlib.util.spec_from_file_location(name, build / "__init__.py")
    loaded = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, loaded)
    spec.loader.exec_module(loaded)
    assert loaded.apply(plain).modules == LAYERS


def test_a_run_without_its_cut_is_refused(problems, tmp_path):
    file = Path(problems[1].access.file).with_name(CUTS)
    text = file.read_text()
    run = recorded(problems[1], tmp_path / "run")
    try:
        data = json.loads(text)
        data[0]["layers"][0]["code"] = ""
        file.write_text(json.dumps(data))
        with pytest.raises(BadInputError, match="the source of Step is not known"):
            ship(run, tmp_path / "package")
        file.unlink()
        with pytest.raises(BadInputError, match="which no package can find in a model without"):
            ship(run, tmp_path / "package")
    finally:
        file.write_text(text)
