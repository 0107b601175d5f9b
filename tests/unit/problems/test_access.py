"""Candidates may read exactly the user's files that the problem's own file needs."""

from pathlib import Path

import pytest
import torch

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadInputError
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.problems import load_problem
from adaexplore.problems.access import _may_be_secret

LAYERS = """
from pathlib import Path
import torch
from torch import nn
from package.deep.activation import act

class Scaled(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.register_buffer("table", torch.load(Path(__file__).parent / "table.pt"))

    def forward(self, x):
        return {"out": act(self.linear(x)) * self.table}
"""
PROBLEM = """
from pathlib import Path
import torch
from package import *

Model = Scaled

def get_inputs():
    return [torch.load(Path(__file__).parent / "inputs.pt")]
"""
CANDIDATE = """
import torch
from package import Scaled

class ModelNew(Scaled):
    def forward(self, x):
        return {"out": torch.relu(self.linear(x)) * self.table}
"""


@pytest.fixture
def project(tmp_path):
    """A package with data, and a problem beside it that uses both."""
    deep = tmp_path / "package" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "package/__init__.py").write_text("from .layers import Scaled")
    (tmp_path / "package/layers.py").write_text(LAYERS)
    (deep / "activation.py").write_text("import torch\n\ndef act(x):\n    return torch.relu(x)\n")
    torch.save(torch.rand(8), tmp_path / "package/table.pt")
    torch.save(torch.rand(4, 8), tmp_path / "inputs.pt")
    (tmp_path / "package/neighbour.txt").write_text("private")
    (deep / "neighbour.txt").write_text("private")
    (tmp_path / "problem.py").write_text(PROBLEM)
    return tmp_path


@pytest.fixture
def load(on_server):
    def load(path, **options):
        return load_problem(path, device="cpu", language="cpp", **options)

    return load


def complaint(action) -> str:
    with pytest.raises(BadInputError) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def below(project, paths):
    return sorted(str(Path(path).relative_to(project)) for path in paths)


class TestWhatIsOpened:
    def test_the_modules_and_the_data_of_the_constructor(self, project, load):
        access = load(project / "problem.py").access
        assert access.file == str(project / "problem.py")
        assert below(project, access.reads) == ["package/table.pt"]
        assert {name: below(project, [file]) for name, file in access.modules} == {
            "package": ["package/__init__.py"],
            "package.layers": ["package/layers.py"],
            "package.deep": ["package/deep"],
            "package.deep.activation": ["package/deep/activation.py"],
        }

    def test_a_file_of_its_own_needs_none_and_is_not_run(self, tmp_path, monkeypatch):
        monkeypatch.setattr("adaexplore.sandbox.process.ForkServer.start", None)
        file = tmp_path / "problem.py"
        file.write_text("import torch\nclass Model: pass\ndef get_inputs(): return []\n1 / 0\n")
        problem = load_problem(file, device="cpu", language="cpp")
        assert problem.access.readable == ()

    def test_the_content_of_the_files_decides_the_digest(self, project, load):
        before = load(project / "problem.py").digest
        torch.save(torch.ones(8), project / "package/table.pt")
        assert load(project / "problem.py").digest != before

    def test_data_by_absolute_path(self, project, load, tmp_path_factory):
        elsewhere = tmp_path_factory.mktemp("data") / "table.pt"
        (project / "package/table.pt").rename(elsewhere)
        text = LAYERS.replace('Path(__file__).parent / "table.pt"', f'"{elsewhere}"')
        (project / "package/layers.py").write_text(text)
        assert load(project / "problem.py").access.reads == (str(elsewhere),)


class TestCandidates:
    """A candidate's process, with the access of the problem."""

    @pytest.fixture
    def python(self, project, load, server):
        problem = load(project / "problem.py")
        worker = server.spawn(
            "worker_entries:act",
            name="worker",
            confined="cpu",
            readable=problem.access.readable,
        )

        def python(code):
            reply = worker.call({"do": "python", "code": code, "given": str(project)}, 60.0)
            return reply["raised"] if "raised" in reply else reply["result"]

        yield python
        worker.kill()

    def test_it_reads_what_the_reference_reads(self, python):
        read = "result = len(open(f'{given}/package/table.pt', 'rb').read()) > 0"
        assert python(read) is True

    @pytest.mark.parametrize(
        "attack",
        [
            pytest.param("open(f'{given}/package/neighbour.txt')", id="the neighbour of a file"),
            pytest.param("open(f'{given}/package/deep/neighbour.txt')", id="a neighbour of code"),
            pytest.param("open(f'{given}/problem.py')", id="the problem's file"),
            pytest.param("open(f'{given}/inputs.pt', 'rb')", id="the inputs"),
            pytest.param("open(f'{given}/package/table.pt', 'r+b')", id="writing to a file"),
            pytest.param("open(f'{given}/package/new.txt', 'w')", id="writing a new one"),
            pytest.param("__import__('os').listdir(f'{given}/package')", id="listing a folder"),
            pytest.param(
                "import os, pwd\nopen(pwd.getpwuid(os.getuid()).pw_dir + '/.ssh/id_rsa')",
                id="a key",
            ),
        ],
    )
    def test_nothing_else(self, python, attack, tmp_path):
        found = python(f"{attack}\nresult = 'read'")
        if "'w'" in attack or "'r+b'" in attack:
            assert found in ("PermissionError", "OSError")  # by Landlock, or a mount
        else:
            assert found in ("PermissionError", "FileNotFoundError")
            assert found == "PermissionError" or ".ssh" in attack  # there may be no key

    @pytest.mark.slow
    def test_one_that_derives_from_the_user_s_class_passes(self, project, load, server):
        problem = load(project / "problem.py")
        evaluator = LocalEvaluator(
            server, problem, timeout_s=60.0, memory_bytes=4 << 30, brief=True
        )
        try:
            evaluator.prepare()
            verdict = evaluator.evaluate(Candidate(CANDIDATE, "cpp"))
        finally:
            evaluator.close()
        assert verdict.status == "passed", verdict


class TestRefusals:
    @pytest.fixture
    def hidden(self, project):
        """The project, with its table in a hidden folder."""
        (project / ".private").mkdir()
        table = (project / "package/table.pt").rename(project / ".private/table.pt")
        text = LAYERS.replace('Path(__file__).parent / "table.pt"', f'"{table}"')
        (project / "package/layers.py").write_text(text)
        return table

    def test_a_hidden_file_is_for_the_user_to_allow(self, project, load, hidden):
        text = complaint(lambda: load(project / "problem.py"))
        assert f"--allow {hidden}" in text
        access = load(project / "problem.py", allow=(str(hidden),)).access
        assert access.reads == (str(hidden),)

    def test_what_holds_everything_is_never_allowed(self, project, load, monkeypatch):
        monkeypatch.chdir(project)
        for path in map(str, (Path.home(), Path("/"), project)):
            with pytest.raises(BadInputError, match="must not read"):
                load(project / "problem.py", allow=(path,))

    def test_an_allowed_path_that_is_not_there(self, project, load):
        assert "no such file" in complaint(lambda: load(project / "problem.py", allow=("nowhere",)))

    def test_what_the_search_for_files_cannot_see_is_met_before_any_candidate(self, project, load):
        """Listing a folder is not opening a file, and works in the trusted process alone."""
        text = LAYERS + "\nimport os\nos.listdir(Path(__file__).parent)\n"
        (project / "package/layers.py").write_text(text)
        found = complaint(lambda: load(project / "problem.py"))
        assert f"Permission denied: '{project / 'package'}'" in found
        assert "--allow PATH" in found
        load(project / "problem.py", allow=(str(project / "package"),))

    def test_a_missing_module_is_said_with_its_line(self, project, load):
        (project / "problem.py").write_text("import nowhere_to_be_found\n" + PROBLEM)
        text = complaint(lambda: load(project / "problem.py"))
        assert text.startswith("problem.py, line 1: ")
        assert "nowhere_to_be_found" in text


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        ("/home/ann/.ssh/config", True),
        ("/home/ann/.netrc", True),
        ("/home/ann/project/server.pem", True),
        ("/home/ann/project/credentials.json", True),
        ("/home/ann/project/tokenizer.json", False),
        ("/home/ann/project/weights.pt", False),
    ],
)
def test_what_may_be_secret(path, secret):
    assert _may_be_secret(Path(path)) == secret
