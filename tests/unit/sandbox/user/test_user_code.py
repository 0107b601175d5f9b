import hashlib
import inspect
import os
import resource
import sys
import textwrap

import pytest
import torch
from torch import nn

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Access, Workload
from adaexplore.sandbox.user.user_code import Instance, Stored
from adaexplore.sandbox.user.values import InitArgs, Inputs, check_outputs, tensors_of

LINEAR = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, n_in=3, n_out=2):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        return self.linear(x)

def get_inputs():
    return [torch.rand(4, 3)]
"""

CPU = torch.device("cpu")

MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self.called_with = (args, kwargs)

    def forward(self, *args, **kwargs):
        return torch.ones(2)
"""


@pytest.fixture
def load(tmp_path):
    def load(source, class_name="Model", *, seed=0, mode="as-built", init=None, **more):
        return Instance.load(
            textwrap.dedent(source),
            class_name,
            device="cpu",
            seed=seed,
            mode=mode,
            folder=tmp_path,
            init=init,
            **more,
        )

    return load


def complaint(action) -> str:
    with pytest.raises(BadProblemError) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestLoading:
    def test_the_seed_fixes_weights_and_inputs(self, load):
        first, same, other = load(LINEAR, seed=1), load(LINEAR, seed=1), load(LINEAR, seed=2)
        assert torch.equal(first.model.linear.weight, same.model.linear.weight)
        assert not torch.equal(first.model.linear.weight, other.model.linear.weight)
        [a], [b], [c] = (i.inputs(s).args for i, s in ((first, 5), (other, 5), (first, 6)))
        assert torch.equal(a, b)
        assert not torch.equal(a, c)

    def test_python_and_numpy_generators_are_seeded_too(self, load):
        pytest.importorskip("numpy")
        source = MODEL + (
            "import random, numpy as np\n"
            "def get_inputs():\n"
            "    return [random.random(), float(np.random.rand())]\n"
        )
        instance = load(source)
        assert instance.inputs(3) == instance.inputs(3)
        assert instance.inputs(3) != instance.inputs(2**40)

    def test_calling_gives_named_outputs_without_gradient(self, load):
        instance = load(LINEAR)
        inputs = instance.inputs(0)
        [(path, output)] = instance(inputs)
        assert path == "output"
        assert not output.requires_grad
        assert torch.equal(output, instance.model(*inputs.args))

    @pytest.mark.parametrize(
        ("mode", "training"), [("as-built", True), ("train", True), ("eval", False)]
    )
    def test_mode(self, load, mode, training):
        model = load(LINEAR, mode=mode).model
        assert model.training == model.dropout.training == training

    def test_as_built_keeps_what_the_constructor_chose(self, load):
        source = LINEAR.replace("nn.Dropout(0.5)", "nn.Dropout(0.5)\n        self.eval()")
        assert not load(source).model.training
        assert load(source, mode="train").model.training

    def test_source_is_found_by_inspection(self, load):
        model = load(LINEAR).model
        assert "self.linear(x)" in inspect.getsource(type(model).forward)

    def test_a_dataclass_may_be_defined_in_the_file(self, load):
        source = "from __future__ import annotations\nimport dataclasses\n" + MODEL
        source += "@dataclasses.dataclass\nclass Config:\n    width: int = 3\n"
        assert load(source).module.Config().width == 3

    def test_different_sources_of_one_name_do_not_meet(self, load):
        first = load(LINEAR, name="same")
        second = load(MODEL, name="same")
        assert first.module is not second.module
        assert "linear" in inspect.getsource(type(first.model))


class TestInitArgs:
    @pytest.mark.parametrize(
        ("returned", "expected"),
        [
            (None, ((), {})),
            ("[1, 'a']", ((1, "a"), {})),
            ("(1, 2)", ((1, 2), {})),
            ("{'width': 3}", ((), {"width": 3})),
            ("[[1], {'width': 3}]", ((1,), {"width": 3})),
            ("[[], {}]", ((), {})),
            ("[[1, 2], [3, 4]]", (([1, 2], [3, 4]), {})),
        ],
    )
    def test_forms(self, load, returned, expected):
        source = MODEL
        if returned is not None:
            source += f"\ndef get_init_inputs():\n    return {returned}\n"
        assert load(source).model.called_with == expected

    def test_a_candidate_is_built_as_it_is_told(self, load):
        source = LINEAR.replace("class Model", "class ModelNew")
        instance = load(source, "ModelNew", init=InitArgs([], {"n_in": 7, "n_out": 5}))
        assert instance.model.linear.weight.shape == (5, 7)


class TestInputs:
    @pytest.mark.parametrize(
        ("returned", "args", "kwargs"),
        [
            ("[1, 2.5, True, None, 'same']", [1, 2.5, True, None, "same"], {}),
            ("(1, [2, (3,)])", [1, [2, (3,)]], {}),
            ("{'causal': True}", [], {"causal": True}),
        ],
    )
    def test_forms(self, load, returned, args, kwargs):
        instance = load(MODEL + f"\ndef get_inputs():\n    return {returned}\n")
        assert instance.inputs(0) == Inputs(args, kwargs)

    def test_a_lone_tensor_is_one_argument(self, load):
        instance = load(MODEL + "\ndef get_inputs():\n    return torch.arange(3)\n")
        [tensor] = instance.inputs(0).args
        assert tensor.tolist() == [0, 1, 2]

    def test_keyword_inputs_reach_forward(self, load):
        instance = load(
            """
            import torch
            class Model(torch.nn.Module):
                def forward(self, x, scale):
                    return x * scale
            def get_inputs():
                return {"scale": 3, "x": torch.ones(2)}
            """
        )
        assert instance(instance.inputs(0))[0][1].tolist() == [3, 3]

    def test_inputs_lie_on_the_device_and_need_no_gradient(self, load, tmp_path):
        source = """
            import torch
            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.weight = torch.nn.Parameter(torch.ones(2, device="cpu"))
                    self.scale = torch.ones(2)
            def get_inputs():
                return [{"x": [torch.ones(2, device="cpu", requires_grad=True)]}, torch.ones(2)]
        """
        instance = Instance.load(
            textwrap.dedent(source),
            "Model",
            device="meta",
            seed=0,
            mode="as-built",
            folder=tmp_path,
        )
        tensors = tensors_of(instance.inputs(0))
        assert [tensor.device.type for tensor in tensors] == ["meta", "meta"]
        assert not any(tensor.requires_grad for tensor in tensors)
        assert instance.model.weight.device.type == "meta"
        assert instance.model.scale.device.type == "meta"


class TestComplaints:
    def test_importing_names_the_line(self, load):
        text = complaint(lambda: load("import torch\n1 / 0\n", name="mine"))
        assert text == "mine, line 2: the file raised ZeroDivisionError: division by zero"

    def test_missing_library(self, load):
        text = complaint(lambda: load("import no_such_library_anywhere"))
        assert "no_such_library_anywhere" in text
        assert "install it" in text

    def test_a_file_that_exits(self, load):
        assert "SystemExit" in complaint(lambda: load("raise SystemExit(3)"))

    def test_constructor_raising(self, load):
        source = MODEL.replace("super().__init__()", "raise ValueError('no\\nmore')")
        assert complaint(lambda: load(source)) == (
            "Model, line 7: Model(...) raised ValueError: no"
        )

    def test_constructor_arguments_that_do_not_fit(self, load):
        source = LINEAR + "\ndef get_init_inputs():\n    return [1, 2, 3]\n"
        assert "positional argument" in complaint(lambda: load(source))

    def test_model_that_is_no_module(self, load):
        assert "nn.Module" in complaint(lambda: load("def Model(): return 3"))

    def test_get_init_inputs_that_is_no_list(self, load):
        text = complaint(lambda: load(MODEL + "\ndef get_init_inputs():\n    return 3\n"))
        assert "get_init_inputs(): returned a value of type int" in text

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ("return None", "get_inputs(): returned None; return a list or a dict"),
            ("return [][1]", "line 14: get_inputs() raised IndexError"),
            (
                "return torch.ones(3) @ torch.ones(2)",
                "line 14: get_inputs() raised Runtime",
            ),
        ],
    )
    def test_get_inputs(self, load, body, expected):
        instance = load(MODEL + f"\ndef get_inputs():\n    {body}\n")
        assert expected in complaint(lambda: instance.inputs(0))

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ("raise KeyError('k')", "line 11: forward() raised KeyError: 'k'"),
            ("return None", "forward(): output is None; return tensors"),
            ("return torch.ones(1), 'text'", "output[1] is a value of type str"),
        ],
    )
    def test_forward(self, load, body, expected):
        instance = load(MODEL.replace("return torch.ones(2)", body))
        assert expected in complaint(lambda: instance(Inputs()))

    @pytest.mark.parametrize("stage", ["constructor", "inputs"])
    def test_too_large_for_the_cpu_says_the_sizes(self, load, stage):
        huge = "torch.empty(2**50, dtype=torch.uint8)"
        source = MODEL + f"\ndef get_inputs():\n    return [{huge}]\n"
        if stage == "constructor":
            source = source.replace("self.called_with =", f"self.huge = {huge}\n        self.x =")
        text = complaint(lambda: load(source).inputs(0))
        assert "too large for the device" in text
        assert "1048576.0 GiB" in text
        assert "in all" in text

    def test_too_large_for_what_the_process_may_have_says_that_limit(self, load):
        source = MODEL + "\ndef get_inputs():\n    return [torch.empty(2**50)]\n"
        _, most = before = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (2**32, most))
        try:
            text = complaint(lambda: load(source).inputs(0))
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, before)
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        assert f"({min(2**32, total) / 2**30:.1f} GiB in all)" in text

    def test_a_candidate_raises_its_own_exceptions(self, load):
        with pytest.raises(ZeroDivisionError):
            load("1 / 0", "ModelNew")
        with pytest.raises(AttributeError, match="ModelNew"):
            load(MODEL, "ModelNew")
        with pytest.raises(SyntaxError):
            load("class ModelNew(", "ModelNew")

    @pytest.mark.parametrize(
        ("outputs", "expected"),
        [
            ([], "returns no tensor"),
            ([("output", torch.eye(3).to_sparse())], r"output is a sparse tensor \(sparse_coo\)"),
            (
                [("output[0]", torch.ones(2)), ("output[1]", torch.tensor([torch.nan] * 2))],
                r"output\[1\] is NaN in all of its 2 elements",
            ),
        ],
    )
    def test_outputs_that_cannot_be_verified_against(self, outputs, expected):
        with pytest.raises(BadProblemError, match=expected):
            check_outputs("mine", outputs, CPU)

    def test_outputs_elsewhere_than_the_inputs_cannot_be_timed(self):
        with pytest.raises(BadProblemError, match="output is on the CPU, and the inputs"):
            check_outputs("mine", [("output", torch.ones(2))], torch.device("cuda", 0))

    def test_some_nan_and_no_elements_are_ordinary(self):
        some = torch.tensor([1.0, torch.nan])
        check_outputs("mine", [("output[0]", some), ("output[1]", torch.ones(0, 3))], CPU)

    @pytest.mark.parametrize(
        "dtype", [torch.float16, torch.bool, torch.int64, torch.complex64, torch.float8_e4m3fn]
    )
    def test_outputs_of_any_type_can_be_checked(self, dtype):
        check_outputs("mine", [("output", nn.Parameter(torch.ones(3)).detach().to(dtype))], CPU)


def stored(path, content) -> Stored:
    torch.save(content, path)
    return Stored(str(path), hashlib.sha256(path.read_bytes()).hexdigest())


class TestStoredWeights:
    @pytest.fixture
    def linear(self, load, tmp_path):
        state = load(LINEAR, seed=7).model.state_dict()
        file = tmp_path / "weights.pt"
        return state, load(LINEAR, weights=stored(file, state)), file

    def test_they_replace_those_of_the_constructor(self, linear):
        state, instance, _ = linear
        assert torch.equal(instance.model.linear.weight, state["linear.weight"])

    def test_another_seed_gives_others_close_by_and_the_same_again(self, linear):
        state, instance, _ = linear
        other, same, third = (instance.rebuilt(seed, "as-built").model for seed in (5, 5, 6))
        factors = other.linear.weight.detach() / state["linear.weight"]
        assert 0.75 <= float(factors.min()) < float(factors.max()) <= 1.25
        assert torch.equal(other.linear.weight, same.linear.weight)
        assert not torch.equal(other.linear.weight, third.linear.weight)

    def test_tied_weights_stay_tied(self, load, tmp_path):
        source = LINEAR.replace(
            "nn.Dropout(0.5)", "nn.Linear(3, 2)\n        self.dropout.weight = self.linear.weight"
        )
        weights = stored(tmp_path / "tied.pt", load(source).model.state_dict())
        model = load(source, weights=weights).rebuilt(5, "as-built").model
        assert model.dropout.weight is model.linear.weight

    def test_what_does_not_fit_names_the_file(self, load, tmp_path):
        weights = stored(tmp_path / "other.pt", {"nothing": torch.ones(1)})
        assert "other.pt" in complaint(lambda: load(LINEAR, weights=weights))

    def test_a_file_that_has_changed_is_refused(self, linear, load):
        _, instance, file = linear
        file.write_bytes(file.read_bytes() + b"\0")
        text = complaint(lambda: load(LINEAR, weights=instance.weights))
        assert "has changed since it was captured" in text


class TestWorkloads:
    def test_an_expression_over_the_names_of_the_file(self, load):
        source = MODEL + (
            "def get_input_groups():\n    return [[torch.rand(2)], {'x': torch.rand(3)}]\n"
        )
        instance = load(source)
        drawn = [instance.inputs(1, Workload(draw=f"get_input_groups()[{i}]")) for i in (0, 1)]
        assert (drawn[0].args[0].shape, drawn[1].kwargs["x"].shape) == ((2,), (3,))

    def test_captured_inputs_are_the_same_under_every_seed(self, load, tmp_path):
        file = tmp_path / "inputs.pt"
        content = {"args": [torch.arange(3), None, 2.5], "kwargs": {"mask": torch.ones(1)}}
        captured = Workload("captured", file=str(file), digest=stored(file, content).digest)
        instance = load(LINEAR)
        for seed in (0, 1):
            inputs = instance.inputs(seed, captured)
            assert (inputs.args[0].tolist(), inputs.args[1:]) == ([0, 1, 2], [None, 2.5])
            assert inputs.kwargs["mask"].tolist() == [1.0]

    def test_captured_inputs_that_have_changed_are_refused(self, load, tmp_path):
        file = tmp_path / "inputs.pt"
        stored(file, {"args": [], "kwargs": {}})
        captured = Workload("captured", file=str(file), digest="0" * 64)
        assert "has changed" in complaint(lambda: load(LINEAR).inputs(0, captured))


class TestAccess:
    """The source runs in the place of the user's file."""

    def test_it_runs_as_that_file(self, load, tmp_path):
        (tmp_path / "table.txt").write_text("5")
        source = MODEL + (
            "from pathlib import Path\nVALUE = (Path(__file__).parent / 'table.txt').read_text()\n"
        )
        access = Access(file=str(tmp_path / "mine.py"))
        for name in ("Model", "ModelNew"):
            text = source.replace("Model", name)
            assert load(text, name, access=access).module.VALUE == "5"

    def test_a_package_beside_the_file(self, load, tmp_path, clean_imports):
        (tmp_path / "beside_it.py").write_text("WIDTH = 4")
        source = MODEL + "from beside_it import *\n"
        assert load(source, access=Access(imports=(str(tmp_path),))).module.WIDTH == 4

    def test_the_standard_library_comes_first(self, load, tmp_path, clean_imports):
        (tmp_path / "wave.py").write_text("raise ImportError")
        load("import wave\n" + MODEL, access=Access(imports=(str(tmp_path),)))

    def test_known_modules_need_no_folder_on_the_path(self, load, tmp_path, clean_imports):
        for name in ("parent_of_it/child_of_it", "bare_of_it"):
            (tmp_path / name).mkdir(parents=True)
        (tmp_path / "parent_of_it/__init__.py").write_text("")
        (tmp_path / "parent_of_it/child_of_it/__init__.py").write_text("from .leaf import A")
        (tmp_path / "parent_of_it/child_of_it/leaf.py").write_text("A = 1")
        (tmp_path / "bare_of_it/leaf.py").write_text("B = 2")
        modules = {
            "parent_of_it": "parent_of_it/__init__.py",
            "parent_of_it.child_of_it": "parent_of_it/child_of_it/__init__.py",
            "parent_of_it.child_of_it.leaf": "parent_of_it/child_of_it/leaf.py",
            "bare_of_it": "bare_of_it/",
            "bare_of_it.leaf": "bare_of_it/leaf.py",
        }
        access = Access(modules=tuple((n, f"{tmp_path}/{f}") for n, f in modules.items()))
        source = MODEL + "from parent_of_it.child_of_it import A\nfrom bare_of_it.leaf import B\n"
        module = load(source, access=access).module
        assert (module.A, module.B) == (1, 2)

    @pytest.fixture
    def clean_imports(self, monkeypatch):
        monkeypatch.setattr(sys, "path", [*sys.path])
        monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
        yield
        ours = {"beside_it", "parent_of_it", "bare_of_it"}
        for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
            del sys.modules[name]
