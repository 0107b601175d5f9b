"""Candidates are drop-ins: the reference's interface, weights, results and side effects."""

from __future__ import annotations

import copy
import importlib.util
import io
import itertools
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import references
import torch
from torch.utils import _pytree as pytree

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Mode, Problem, Workload
from adaexplore.core.settings.config import Config
from adaexplore.propose.compiler.identity import fingerprint
from adaexplore.propose.compiler.job import run
from adaexplore.run.session import open_session

_numbers = itertools.count()


def load(source: str, folder: Path) -> ModuleType:
    """The module that a file with this source is."""
    file = folder / f"module_{next(_numbers)}.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module  # where pickle looks its classes up
    spec.loader.exec_module(module)
    return module


def reply(
    source: str,
    mode: Mode = "as-built",
    workloads: tuple[Workload, ...] = (Workload(),),
    **knobs: Any,
) -> dict[str, Any]:
    return run(request_for(Problem("example", source, "cpp", "cpu", workloads, mode=mode), **knobs))


def request_for(problem: Problem, **knobs: Any) -> dict[str, Any]:
    tries = [{"family": "test", "knobs": knobs, "needs": []}]
    return {"problem": problem.to_json(), "tries": tries, "known": []}


def build(module: ModuleType, name: str) -> torch.nn.Module:
    torch.manual_seed(0)
    arguments = module.get_init_inputs() if hasattr(module, "get_init_inputs") else []
    return getattr(module, name)(*arguments)


class Pairing:
    """A reference and a candidate with the same weights."""

    def __init__(self, source: str, folder: Path, mode: Mode = "as-built", **knobs: Any) -> None:
        self.reply = reply(source, mode, **knobs)
        assert "failure" not in self.reply, self.reply["failure"]
        self.reference_module = load(source, folder)
        self.reference = build(self.reference_module, "Model")
        candidate_module = load(self.reply["source"], folder)
        torch.manual_seed(0)
        arguments = getattr(self.reference_module, "get_init_inputs", list)()
        self.candidate = candidate_module.ModelNew(*arguments)
        for model in (self.reference, self.candidate):
            if mode != "as-built":
                model.train(mode == "train")

    def inputs(self) -> list[Any]:
        return self.reference_module.get_inputs()

    def agree(self) -> None:
        """Same structure and values on fresh inputs, same buffers afterwards."""
        self.agree_on(*self.inputs())

    def agree_on(self, *inputs: Any, **named: Any) -> None:
        """Same structure and values on these inputs, same buffers afterwards."""
        with torch.no_grad():
            expected, expected_spec = pytree.tree_flatten(self.reference(*inputs, **named))
            got, got_spec = pytree.tree_flatten(self.candidate(*inputs, **named))
        assert len(got) == len(expected)
        if "Pair" not in str(expected_spec):  # each module defines its own
            assert got_spec == expected_spec
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(dict(self.candidate.state_dict()), self.state())

    def state(self) -> dict[str, torch.Tensor]:
        return dict(self.reference.state_dict())


def change_weights(pair: Pairing) -> None:
    """New weights for both, in the ways that training scripts and loaders use."""
    torch.manual_seed(7)
    with torch.no_grad():
        for parameter in pair.reference.parameters():
            parameter.copy_(torch.randn_like(parameter))
    pair.candidate.load_state_dict(pair.reference.state_dict())


def test_keeps_the_constructor_and_the_state_dict(tmp_path: Path) -> None:
    pair = Pairing(references.LINEAR_GELU, tmp_path)
    assert list(pair.candidate.state_dict()) == list(pair.reference.state_dict())
    torch.testing.assert_close(dict(pair.candidate.state_dict()), pair.state())
    pair.agree()
    change_weights(pair)
    pair.agree()


@pytest.mark.slow
def test_stands_alone(tmp_path: Path) -> None:
    source = reply(references.LINEAR_GELU)["source"]
    assert "torch.compile" not in source
    assert "get_inputs" not in source
    assert "manual_seed" not in source
    assert "adaexplore" not in "\n".join(source.split('"""')[2:])
    file = tmp_path / "alone.py"
    file.write_text(
        source + "\nwith torch.no_grad():\n    out = ModelNew(24)(torch.randn(8, 24))\n"
        "print(tuple(out.shape))\n"
    )
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(8, 16)"


@pytest.mark.parametrize(
    "pack", [*(pytest.param(p, marks=pytest.mark.slow) for p in ("none", "mkl")), "onednn"]
)
def test_folded_weights_follow_changes(tmp_path: Path, pack: str) -> None:
    pair = Pairing(references.TWO_LAYERS, tmp_path, fold=True, pack=pack)
    pair.agree()
    change_weights(pair)
    pair.agree()
    pair.reference.second.weight = pair.candidate.second.weight = torch.nn.Parameter(
        torch.randn(16, 32)
    )
    pair.agree()


@pytest.mark.slow
def test_batch_norm_in_eval_mode_is_folded_into_the_convolution(tmp_path: Path) -> None:
    pair = Pairing(references.CONV_NORM, tmp_path, "eval", fold=True, pack="onednn")
    assert (
        "running_mean" not in pair.reply["source"].partition("def _call")[2].partition("class")[0]
    )
    pair.agree()
    pair.reference.layers[0].norm.running_mean += 1
    pair.candidate.load_state_dict(pair.reference.state_dict())
    pair.agree()
    for model in (pair.reference, pair.candidate):
        model.train()  # for which there are no kernels
    pair.agree()


@pytest.mark.slow
def test_batch_norm_in_train_mode_updates_its_statistics(tmp_path: Path) -> None:
    pair = Pairing(references.CONV_NORM, tmp_path, "train", fold=True)
    pair.agree()
    pair.agree()
    assert int(pair.candidate.layers[0].norm.num_batches_tracked) == 2


def test_structured_inputs_and_outputs_tied_weights_and_written_buffers(tmp_path: Path) -> None:
    pair = Pairing(references.STRUCTURED, tmp_path)
    pair.agree()
    change_weights(pair)
    pair.agree()
    assert int(pair.candidate.calls) == 2
    tokens, extra, _ = pair.inputs()
    pair.agree_on(tokens, extra, 0.25)
    pair.agree_on(tokens, extra)
    pair.agree_on(tokens, {"shift": (torch.ones(6), None)}, 0.5, flag=True)


@pytest.mark.slow
def test_an_output_that_is_an_input(tmp_path: Path) -> None:
    Pairing(references.SOFTMAX, tmp_path).agree()


def test_other_layouts_are_copied_and_other_shapes_left_to_pytorch(tmp_path: Path) -> None:
    pair = Pairing(references.SOFTMAX, tmp_path, fast_exp=True, reciprocal=True)
    pair.agree_on(torch.randn(5, 40))
    pair.agree_on(torch.randn(6, 40, dtype=torch.float64))
    without_pytorch(pair.candidate)
    x = torch.randn(40, 6).t()
    torch.testing.assert_close(pair.candidate(x)[0], torch.softmax(x, -1))


def without_pytorch(model: torch.nn.Module) -> None:
    """Make calls fail that a candidate leaves to the reference's own forward."""

    def refuse(**_: Any) -> None:
        raise AssertionError("this call is PyTorch's own work")

    model._reference_forward = refuse


class TestSeveralSizes:
    def pairing(self, folder: Path, source: str, *rows: int, **knobs: Any) -> Pairing:
        """A candidate for these numbers of rows; the last one has to be right and is not timed."""
        sized = source.replace("def get_inputs():", "def get_inputs(rows=4):")
        workloads = tuple(Workload(str(n), f"get_inputs({n})", timed=n != rows[-1]) for n in rows)
        return Pairing(
            sized.replace("randn(4,", "randn(rows,"), folder, workloads=workloads, **knobs
        )

    @pytest.mark.parametrize(
        "knobs",
        [
            pytest.param({}, marks=pytest.mark.slow),
            {"fold": True, "pack": "onednn", "workspace": True, "fast_exp": True},
        ],
    )
    def test_every_timed_size_has_kernels_and_any_size_is_right(self, tmp_path, knobs) -> None:
        pair = self.pairing(tmp_path, references.TWO_LAYERS, 4, 7, 2, **knobs)
        for rows in (4, 7, 2, 5, 4, 7):
            pair.agree_on(torch.randn(rows, 16))
        change_weights(pair)
        for rows in (4, 7, 2):
            pair.agree_on(torch.randn(rows, 16))
        without_pytorch(pair.candidate)
        pair.agree_on(torch.randn(4, 16))
        pair.agree_on(torch.randn(7, 16))
        with pytest.raises(AssertionError, match="PyTorch's own"):
            pair.agree_on(torch.randn(2, 16))

    def test_equal_sizes_have_the_same_kernels(self, tmp_path: Path) -> None:
        twice = self.pairing(tmp_path, references.TWO_LAYERS, 4, 4, 2)
        once = self.pairing(tmp_path, references.TWO_LAYERS, 4, 2)
        assert twice.reply == once.reply

    def test_names_that_only_the_forward_uses_are_kept(self, tmp_path: Path) -> None:
        source = (
            "import math\nfrom torch import nn, randn\n\n"
            "def scaled(x):\n    return x * math.pi\n\n"
            "unused = randn(2)\n\n"
            "class Model(nn.Module):\n"
            "    def forward(self, x):\n        unused = scaled(x)\n        return unused + 1\n\n"
            "def get_inputs():\n    return [randn(4, 3)]\n"
        )
        pair = Pairing(source, tmp_path)
        assert "unused = randn(2)" not in pair.reply["source"]
        pair.agree_on(torch.randn(5, 3))
        pair.agree()

    def test_a_forward_of_a_base_class_is_called_there(self, tmp_path: Path) -> None:
        source = references.TWO_LAYERS.replace("class Model(", "class Base(").replace(
            "def get_inputs", "class Model(Base):\n    pass\n\n\ndef get_inputs"
        )
        pair = Pairing(source, tmp_path)
        pair.agree()
        pair.agree_on(torch.randn(5, 16))

    @pytest.mark.slow
    def test_the_judge_passes_it_on_all_sizes(self) -> None:
        sized = references.TWO_LAYERS.replace("get_inputs()", "get_inputs(rows=4)")
        sized = sized.replace("randn(4,", "randn(rows,")
        workloads = (Workload("large", "get_inputs(64)"), Workload("small", timed=False))
        problem = Problem("example", sized, "cpp", "cpu", workloads=workloads)
        found = run(request_for(problem))
        with open_session(problem, Config()) as session:
            session.evaluator.prepare()
            verdict = session.evaluator.evaluate(Candidate(found["source"], "cpp"))
        assert verdict.status == "passed", verdict


@pytest.mark.slow
def test_workspace_is_reused_but_never_an_output(tmp_path: Path) -> None:
    pair = Pairing(references.TWO_LAYERS, tmp_path, workspace=True)
    x, y = *pair.inputs(), *pair.inputs()
    with torch.no_grad():
        first = pair.candidate(x)
        kept = first.clone()
        second = pair.candidate(y)
    assert first.data_ptr() != second.data_ptr()
    torch.testing.assert_close(first, kept)
    pair.agree()


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> Pairing:
    folder = tmp_path_factory.mktemp("uses")
    return Pairing(references.TWO_LAYERS, folder, fold=True, pack="onednn", workspace=True)


class TestUses:
    """What users do with a winner: right, or one clear error."""

    @pytest.mark.parametrize("way", ["deepcopy", "pickle", "torch.save"])
    def test_a_copy_after_a_call_has_weights_of_its_own(self, pair: Pairing, way: str) -> None:
        pair.agree()
        twin = copied(pair.candidate, way)
        twin_pair = copy.copy(pair)
        twin_pair.candidate, twin_pair.reference = twin, copy.deepcopy(pair.reference)
        twin_pair.agree()
        change_weights(twin_pair)
        twin_pair.agree()
        pair.agree()

    def test_weights_changed_through_data_are_folded_again(self, pair: Pairing) -> None:
        pair.agree()
        for model in (pair.reference, pair.candidate):
            model.first.weight.data.mul_(2)
        pair.agree()
        twin = copy.deepcopy(pair.candidate)
        with torch.no_grad():
            before = twin(*pair.inputs())
            for weight in twin.parameters():
                weight.data.zero_()
            assert not torch.equal(twin(*pair.inputs()), before)

    def test_gradients_are_refused(self, pair: Pairing) -> None:
        x = pair.inputs()[0]
        with pytest.raises(RuntimeError, match=r"no gradients: call it under torch\.no_grad"):
            pair.candidate(x)
        frozen = copy.deepcopy(pair.candidate).requires_grad_(False)
        with torch.no_grad():
            expected = frozen(x)
        torch.testing.assert_close(frozen(x), expected)
        with pytest.raises(RuntimeError, match="computes no gradients"):
            frozen(x.requires_grad_())

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda m: m.double(), r"torch\.float64.*specialised to"),
            (lambda m: m.to("meta"), "'meta'.*specialised to"),
            (lambda m: m.load_state_dict(halved(m), assign=True), r"torch\.float16.*specialised"),
        ],
    )
    def test_weights_in_another_form_are_refused(self, pair: Pairing, change, message) -> None:
        pair.agree()
        twin = copy.deepcopy(pair.candidate)
        with torch.no_grad():
            twin(*pair.inputs())
            change(twin)
            with pytest.raises(ValueError, match=message):
                twin(*pair.inputs())

    def test_another_dtype_of_weights_and_inputs_is_left_to_pytorch(self, pair: Pairing) -> None:
        reference, candidate = copy.deepcopy((pair.reference, pair.candidate))
        x = pair.inputs()[0].double()
        with torch.no_grad():
            expected = reference.double()(x)
            assert torch.equal(candidate.double()(x), expected)


def copied(model: torch.nn.Module, way: str) -> torch.nn.Module:
    if way == "deepcopy":
        return copy.deepcopy(model)
    if way == "pickle":
        return pickle.loads(pickle.dumps(model))
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def halved(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.half() for name, tensor in model.state_dict().items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "knobs"),
    [
        (references.TWO_LAYERS, {"fold": True, "pack": "mkl"}),
        (references.CONV_NORM, {"fold": True, "pack": "onednn"}),
        (references.LINEAR_GELU, {}),
    ],
)
def test_every_use_holds_or_is_refused(source: str, knobs: dict[str, Any]) -> None:
    """As the judge tries it: see `evaluate.judge.uses`."""
    problem = Problem("example", source, "cpp", "cpu", mode="eval")
    written = reply(source, "eval", **knobs)["source"]
    with open_session(problem, Config()) as session:
        session.evaluator.prepare()
        uses = {use.name: use for use in session.evaluator.try_uses(Candidate(written, "cpp"))}
    assert "a fresh process" not in uses, uses
    refused = {name for name, use in uses.items() if use.outcome == "refuses"}
    assert refused == {"gradients"}
    assert uses["other batch sizes"].outcome == "holds"
    assert {use.outcome for use in uses.values()} == {"holds", "refuses"}
    assert "computes no gradients" in uses["gradients"].detail


@pytest.mark.slow
def test_autocast_computes_in_bfloat16_and_returns_float32(tmp_path: Path) -> None:
    pair = Pairing(references.TWO_LAYERS, tmp_path, autocast=True, fold=True)
    assert "bfloat16" in pair.reply["source"]
    x = pair.inputs()[0]
    with torch.no_grad():
        got, expected = pair.candidate(x), pair.reference(x)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, expected, rtol=0.05, atol=0.02)


def test_same_request_gives_the_same_source() -> None:
    assert reply(references.TWO_LAYERS, fold=True) == reply(references.TWO_LAYERS, fold=True)


def test_passes_over_what_is_known_and_what_does_not_apply() -> None:
    known = fingerprint(reply(references.SOFTMAX)["source"])
    problem = Problem("example", references.SOFTMAX, "cpp", "cpu")
    tries = [
        {"family": "conv", "knobs": {}, "needs": ["conv"]},
        {"family": "default", "knobs": {}, "needs": []},
        {"family": "fast", "knobs": {"fast_exp": True}, "needs": ["exp"]},
    ]
    request = {"problem": problem.to_json(), "tries": tries, "known": [known]}
    answer = run(request)
    assert answer["family"] == "fast"
    assert answer["passed_over"] == {
        "conv": "needs conv",
        "default": "gives a candidate that is known",
    }
    repeated = run(request | {"tries": tries[:2]})
    assert repeated["family"] == "default"
    assert run(request | {"tries": tries[:1]})["failure"].startswith("nothing to propose")


def test_says_in_one_line_why_a_reference_cannot_be_compiled() -> None:
    failure = reply(references.BRANCHING)["failure"]
    assert failure.startswith("example: cannot be traced as one graph")
    assert "\n" not in failure


class TestRecurrence:
    """TorchInductor unrolls recurrent layers: a long sequence ends in one line, and soon."""

    def source(self, layer: str, steps: int, call: str = "self.layer(x)[0]") -> str:
        return (
            "import torch\nfrom torch import nn\n\n"
            "class Model(nn.Module):\n"
            "    def __init__(self):\n"
            "        super().__init__()\n"
            f"        self.layer = {layer}\n"
            f"    def forward(self, x):\n        return {call}\n\n"
            f"def get_inputs():\n    return [torch.randn(2, {steps}, 8)]\n"
        )

    @pytest.mark.parametrize(
        ("layer", "steps", "counted"),
        [
            ("nn.LSTM(8, 8, batch_first=True)", 512, 512),
            ("nn.GRU(8, 8, num_layers=2, bidirectional=True, batch_first=True)", 100, 400),
            ("nn.RNN(8, 8, batch_first=True)", 4000, 4000),
        ],
    )
    def test_a_long_sequence_is_refused_in_one_line(self, layer, steps, counted):
        found = reply(self.source(layer, steps))
        assert f"its recurrent layers make {counted} steps" in found["failure"]
        assert "\n" not in found["failure"]

    def test_the_steps_of_cells_in_a_loop_count(self):
        call = "torch.stack([self.layer(x[:, i]) for i in range(x.shape[1])], 1)"
        found = reply(self.source("nn.GRUCell(8, 8)", 65, call))
        assert "its recurrent layers make 65 steps" in found["failure"]

    def test_a_short_sequence_is_compiled(self):
        assert "source" in reply(self.source("nn.GRU(8, 8, batch_first=True)", 3))

    def test_a_written_out_recurrence_is_refused_by_its_operations(self, monkeypatch):
        monkeypatch.setattr("adaexplore.propose.compiler.graph.MOST_OPERATIONS", 20)
        call = "[x := torch.tanh(x) for _ in range(40)][-1]"
        found = reply(self.source("nn.Identity()", 3, call))
        assert "operations; more than 20 take TorchInductor too long" in found["failure"]
