"""A module that has no exported graph becomes a problem by the sources of its classes."""

import collections
import dataclasses
import enum
import functools
import importlib
import linecache
import logging
import math
import sys
import textwrap
import threading
from contextlib import suppress

import pytest
import torch
import torch.nn.functional as f
from torch import nn

from adaexplore.core.errors import BadProblemError
from adaexplore.problems import kernelbench
from adaexplore.problems.live import capture
from adaexplore.sandbox.user.user_code import Instance

GAIN = 1.5
OFFSETS = torch.arange(4.0)
Pair = collections.namedtuple("Pair", "low high")


def squared(x):
    return even(x * x, 3)


def even(x, count):
    return x if count == 0 else odd(x + 1, count - 1)


def odd(x, count):
    return x if count == 0 else even(x - 2, count - 1)


class Kind(enum.Enum):
    SOFT = "soft"


@dataclasses.dataclass(frozen=True)
class Options:
    width: int
    kind: Kind = Kind.SOFT
    unused: object = None


class NonZeroCount(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * len(x.nonzero())

    @staticmethod
    def backward(ctx, grad):
        return grad


class Base(nn.Module):
    factor = 0.5

    def forward(self, x):
        return self.scaled(x) if not isinstance(x, Block) else x

    def scaled(self, x):
        raise NotImplementedError


class Block(Base):
    """A block that reads its options."""

    def __init__(self, options):
        super().__init__()
        self.options = options
        self.linear = nn.Linear(options.width, options.width)
        self.act = f.gelu
        self.limits = Pair(-2.0, math.inf)
        self.left_out = set()

    def never_called(self):
        return self.absent

    def text(self):
        return """
without a margin
"""

    def scaled(self, x):
        # a comment of the author
        x = x * len(self.text())
        y = self.act(self.linear(x)) if self.options.kind is Kind.SOFT else x
        return y.clamp(self.limits.low, self.limits.high) * (self.factor + len(self.left_out))


class Model(nn.Module):
    """Every kind of state: nested, shared, tied, buffers, constants, lists and dictionaries."""

    def __init__(self, parts, width=4):
        super().__init__()
        options = Options(width, unused=threading.Lock())
        self.blocks = nn.ModuleList([Block(options), Block(options)])
        self.again = self.blocks[0]
        self.order = [self.blocks[1], self.blocks[0]]
        self.parts = nn.ModuleDict(parts)
        self.body = nn.Sequential(nn.LayerNorm(width), nn.Dropout(0.5), nn.Linear(width, width))
        self.body[2].weight = self.blocks[0].linear.weight
        self.low = nn.Linear(width, width, dtype=torch.bfloat16)
        self.scales = nn.ParameterList([torch.rand(width), torch.rand(width)])
        self.gain = nn.Parameter(torch.rand(()))
        self.register_buffer("table", torch.rand(width), persistent=False)
        self.register_buffer("steps", torch.tensor(3))
        self.register_parameter("bias", None)
        self.constant = torch.rand(width)
        self.rounded = functools.partial(torch.round, decimals=4)

    def forward(self, x, *, factor=1.0, more=None):
        if x.sum() > 0:
            for block in self.order:
                x = block(x)
        else:
            x = squared(x) * GAIN
        x = self.again(self.body(x)) + self.low(x.bfloat16()).float() + OFFSETS
        x = x * self.gain * factor + self.table * self.steps - self.constant
        for name, part in self.parts.items():
            x = part(x) + self.scales[0] * len(name)
        result = NonZeroCount.apply(self.rounded(x))
        return {"rows": len(x), "y": result, "more": (result + more["pair"][0], None)}


class Branch(nn.Module):
    """Adds where a graph cannot: on the values of the input."""

    def forward(self, x):
        return x + 1 if x.sum() > 0 else x


def rand(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0))


def same(found, expected):
    tree = torch.utils._pytree
    assert tree.tree_structure(found) == tree.tree_structure(expected)
    torch.testing.assert_close(tree.tree_leaves(found), tree.tree_leaves(expected))


@torch.no_grad()
def captured_as_it_is(module, args, kwargs, folder):
    """Capture by sources; check on unseen inputs, of both signs, and return the capture."""
    captured = capture(module, args, kwargs, folder=folder)
    source = captured.problem.source
    assert "captured by its sources" in source
    fast = captured.optimized(source.replace("class Model(", "class ModelNew("), folder)
    for sign in (1, -1):
        unseen = [sign * torch.rand_like(t) for t in args]
        same(fast(*unseen, **kwargs), module(*unseen, **kwargs))
    return captured


def defined(source, monkeypatch, file="<cell>", name="__main__", *, in_linecache=True):
    """Run source as a notebook's cell; return its names."""
    source = textwrap.dedent(source)
    if in_linecache:
        entry = (len(source), None, source.splitlines(keepends=True), file)
        monkeypatch.setitem(linecache.cache, file, entry)
    names = {"__name__": name}
    exec(compile(source, file, "exec"), names)
    return names


class TestOneModule:
    @pytest.fixture
    def module(self):
        torch.manual_seed(0)
        module = Model({"relu": nn.ReLU(), "norm": nn.BatchNorm1d(4)})
        module.eval().blocks[1].train()
        return module

    @pytest.fixture
    def captured(self, module, tmp_path):
        kwargs = {"factor": 2.0, "more": {"pair": [rand(4)]}}
        return captured_as_it_is(module, [rand(3, 4)], kwargs, tmp_path)

    def test_it_computes_the_same(self, captured):
        assert captured.problem.workloads[0].name == "3x4_4"

    def test_its_state_has_the_module_s_names(self, captured, module, tmp_path):
        model = Instance.of(captured.problem, tmp_path).model
        assert not model.load_state_dict(module.state_dict(), strict=False).unexpected_keys
        added = model.state_dict().keys() - module.state_dict().keys()
        assert added == {"table", "constant"}
        assert model.body[2].weight is model.blocks[0].linear.weight
        assert model.again is model.blocks[0]
        assert [m.training for m in model.blocks] == [False, True]

    def test_the_file_is_a_problem_without_the_user_s_code(self, captured, tmp_path):
        assert __name__.rpartition(".")[2] not in captured.problem.source.replace(
            f'"""{__name__}.', ""
        )
        problem = kernelbench.load(tmp_path / "problem.py", device="cpu", language="cpp")
        instance = Instance.of(problem, tmp_path)
        assert len(instance(instance.inputs(0))) == 2

    def test_the_source_shows_what_is_computed(self, captured):
        source = captured.problem.source
        assert "# a comment of the author" in source
        assert "def odd(x, count):" in source
        assert "GAIN = 1.5" in source
        assert "nn.Linear(in_features=4, out_features=4, bias=True)" in source
        assert "never_called" not in source
        assert "def __init__(self, options)" not in source


class TestUsersFiles:
    @pytest.fixture
    def beside(self, tmp_path, monkeypatch):
        """Write files that a script beside them imports; return their modules."""

        def write(**sources):
            for name, source in sources.items():
                (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
            monkeypatch.syspath_prepend(tmp_path)
            written.extend(sources)
            return [importlib.import_module(name) for name in sources]

        written = []
        yield write
        for name in written:
            del sys.modules[name]

    def test_names_of_two_files_do_not_meet(self, beside, tmp_path):
        _, second = beside(
            first_file="""
                import logging

                logger = logging.getLogger("first")
                SCALE = 2.0

                def changed(x):
                    logger.debug("first")
                    return x * SCALE
                """,
            second_file="""
                import logging
                import first_file
                from torch import nn

                logger = logging.getLogger("second")
                SCALE = 3.0
                ways = {"up": lambda x: x + SCALE}

                def changed(x):
                    return ways["up"](x)

                class Outer(nn.Module):
                    def forward(self, x):
                        logger.debug("second")
                        if x.sum() > 0:
                            return first_file.changed(x)
                        return changed(x) * first_file.SCALE
                """,
        )
        captured = captured_as_it_is(second.Outer(), [rand(3)], {}, tmp_path)
        assert "first_file" not in captured.problem.source

    def test_a_class_comes_after_its_base(self, beside, tmp_path):
        [module] = beside(
            in_cycle="""
                from torch import nn

                class First(nn.Module):
                    def forward(self, x):
                        return x if isinstance(self, Second) or x.sum() > 0 else x + 1

                class Second(First):
                    pass
                """
        )
        captured_as_it_is(module.First(), [rand(3)], {}, tmp_path)

    def test_a_class_of_a_function_keeps_what_surrounds_it(self, tmp_path):
        def make(shift):
            class Local(nn.Module):
                def forward(self, x):
                    return super().forward(x) if x.dim() > 9 else self.moved(x)

                def moved(self, x):
                    return x + shift if x.sum() > 0 else x

            return Local()

        captured_as_it_is(make(2.5), [rand(3)], {}, tmp_path)


class TestInstalledPackages:
    def test_modules_are_copied_and_helpers_imported(self, tmp_path, monkeypatch):
        package = tmp_path / "site-packages" / "some_layers"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "tools.py").write_text("TABLE = {1: 2}\n\ndef tool(x):\n    return x * 2\n")
        (package / "layers.py").write_text(
            textwrap.dedent("""
                from torch import nn
                from .tools import TABLE, tool

                def beside(x):
                    return tool(x) + TABLE[1]

                class Layer(nn.Module):
                    def __init__(self, limits):
                        super().__init__()
                        self.limits = limits

                    def forward(self, x):
                        return beside(x) if x.sum() > self.limits.low else x
                """)
        )
        monkeypatch.syspath_prepend(package.parent)
        from some_layers.layers import Layer

        captured = captured_as_it_is(Layer(Pair(0, 1)), [rand(3)], {}, tmp_path / "run")
        for name in ("", ".tools", ".layers"):
            monkeypatch.delitem(sys.modules, f"some_layers{name}")
        source = captured.problem.source
        assert "class Layer(nn.Module)" in source
        assert "def beside(x)" in source
        assert "from some_layers.tools import tool\n" in source


class TestNotebooks:
    CELL = """
        from torch import nn
        shift = 2

        class Plain(nn.Module):
            pass

        class Cell(nn.Module):
            def __init__(self):
                super().__init__()
                self.part = Plain()

            def forward(self, x):
                return x + shift if x.sum() > 0 else x
        """

    def test_a_class_of_a_cell(self, tmp_path, monkeypatch):
        names = defined(self.CELL, monkeypatch)
        captured = captured_as_it_is(names["Cell"](), [rand(3)], {}, tmp_path)
        assert "shift = 2" in captured.problem.source

    def test_names_of_another_cell(self, tmp_path, monkeypatch):
        changes = defined("CHANGES = {'by': lambda x: x + 3}\n", monkeypatch, "<first>")["CHANGES"]
        cell = self.CELL.replace("shift", "CHANGES['by'](0)").replace("CHANGES['by'](0) = 2", "")
        names = defined(cell, monkeypatch, "<second>")
        names["Cell"].forward.__globals__["CHANGES"] = changes
        captured_as_it_is(names["Cell"](), [rand(3)], {}, tmp_path)

    def test_code_without_text_is_refused(self, tmp_path, monkeypatch):
        names = defined(self.CELL, monkeypatch, "<string>", in_linecache=False)
        with pytest.raises(BadProblemError, match=r"source cannot be found .* put it into a file"):
            capture(names["Cell"](), [rand(3)], folder=tmp_path)


class Locked(Branch):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def forward(self, x):
        with self.lock:
            return super().forward(x)


class Hidden(Branch):
    def __init__(self):
        super().__init__()
        self.inner = [nn.Linear(3, 3)]

    def forward(self, x):
        return super().forward(self.inner[0](x))


def hooked():
    module = Branch()
    module.register_forward_hook(lambda *_: None)
    return module


def patched():
    module = Branch()
    module.forward = lambda x: Branch.forward(module, x)
    return module


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (Locked, "lock, a lock"),
        (Hidden, r"inner, which holds an unregistered module \(register it\)"),
        (hooked, "the module, which has forward hooks"),
        (patched, "the module, whose forward was replaced on the object"),
    ],
)
def test_what_has_no_source_is_said_in_one_line(make, expected, tmp_path):
    message = rf"^mine: cannot be captured by torch.export: .*; nor by its sources: .*{expected}"
    with pytest.raises(BadProblemError, match=message) as caught:
        capture(make(), [rand(3)], folder=tmp_path, name="mine")
    assert "\n" not in str(caught.value)
    assert "write a problem file with class Model and get_inputs()" in str(caught.value)


@pytest.mark.parametrize("rows", [(3,), (1, 3)], ids=["a branch", "one row in a call"])
def test_the_exporter_prints_nothing(tmp_path, capfd, caplog, rows):
    module = Branch() if len(rows) == 1 else nn.Linear(4, 4)
    with suppress(BadProblemError):
        capture(module, folder=tmp_path, name="mine", calls=[((rand(n, 4),), {}) for n in rows])
    assert "".join(capfd.readouterr()) == ""
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
