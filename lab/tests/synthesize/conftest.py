"""One fork server with what tracing and examining take, and tasks written by hand."""

import textwrap

import pytest

from adaexplore.problems.overlap.confined import STRUCTURE_PRELOAD
from adaexplore.sandbox.process import ForkServer
from adaexplore_lab.synthesize.task import SyntheticTask
from adaexplore_lab.synthesize.validate import Validator


@pytest.fixture(scope="session")
def synthesis_server():
    server = ForkServer.start([*STRUCTURE_PRELOAD, "adaexplore.evaluate.judge.examine"])
    yield server
    server.close()


@pytest.fixture(scope="session")
def new_validator(synthesis_server):
    def new_validator(benchmarks=None, known=None):
        examine = "adaexplore.evaluate.judge.examine:job"
        return Validator(synthesis_server, examine, benchmarks=benchmarks or {}, known=known)

    return new_validator


@pytest.fixture(scope="session")
def written():
    """A task from the body of `forward`, what `get_inputs` returns, and the constructor's lines."""

    def written(body, inputs="torch.randn(5, 7)", init="", name="task", ops=()):
        arguments = ", ".join(f"x{i}" for i in range(inputs.count("torch.rand")))
        lines = [
            "import torch",
            "import torch.nn.functional as F",
            "from torch import nn",
            "",
            "class Model(nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            *textwrap.indent(textwrap.dedent(init), " " * 8).splitlines(),
            f"    def forward(self, {arguments}):",
            *textwrap.indent(textwrap.dedent(body), " " * 8).splitlines(),
            "",
            "def get_inputs():",
            f"    return [{inputs}]",
        ]
        return SyntheticTask(name, "\n".join(lines) + "\n", "creative", ops)

    return written
