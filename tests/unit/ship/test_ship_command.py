"""`adaexplore ship` makes a package that stands alone, or says in one line why it cannot."""

import importlib
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from shipped_blocks import FOLDED, KEEPS, Block, candidate, no_compiler, record

from adaexplore.core.errors import BadInputError
from adaexplore.ship.ship import ship
from adaexplore.ship.trial import Trial, WorkloadTrial, run_trial


@pytest.fixture
def alone(package, tmp_path):
    """Run a Python program beside the package, where adaexplore cannot be imported."""
    (tmp_path / "adaexplore.py").write_text("raise ImportError('not here')")

    def alone(*args):
        path = os.pathsep.join([str(tmp_path), str(package / "src")])
        return subprocess.run(
            [sys.executable, *args],
            cwd=package,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
        )

    return alone


def test_the_package_s_own_tests_pass_without_adaexplore(alone):
    done = alone("-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout


def test_the_benchmark_prints_a_row_for_each_workload(shipped, capsys):
    with torch.compiler.set_stance("force_eager"):
        importlib.import_module("block_kernel.benchmark").main()
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == ["workload", "3x16", "1x16"]
    assert all(float(time) > 0 for row in rows[1:] for time in row.split()[1:])


def test_the_package_says_what_it_is(package):
    verdicts = json.loads((package / "verdicts.json").read_text())
    assert verdicts["verdict"]["status"] == "passed"
    assert verdicts["verdict"]["speedup"] == 1.5
    assert [each["workload"] for each in verdicts["trial"]["workloads"]] == ["3x16", "1x16"]
    project = (package / "pyproject.toml").read_text()
    assert 'license = "LicenseRef-Proprietary"' in project
    assert f"torch>={'.'.join(torch.__version__.split('.')[:2])}" in project
    assert "import block_kernel as kernel" in (package / "README.md").read_text()
    for file in package.rglob("*.py"):
        assert "import adaexplore" not in file.read_text()
        assert "from adaexplore" not in file.read_text()


def shipped(tmp_path, problem, source, inputs=()):
    record(problem, tmp_path / "run", source, inputs)
    with no_compiler():
        return ship(tmp_path / "run", tmp_path / "package", name="mine")


@pytest.fixture
def trials(monkeypatch):
    """Give the trials of a package these errors and speedups, one after the other."""

    def trials(*outcomes):
        left = iter(outcomes)

        def run_trial(folder, name):
            error, speedup = next(left)
            return Trial("", "", "", (WorkloadTrial("3x16", error, 10.0, 10.0 * speedup, 99.0),))

        monkeypatch.setattr("adaexplore.ship.ship.run_trial", run_trial)

    return trials


def test_a_winner_that_keeps_values_has_a_new_one_at_each_call(tmp_path, x, trials):
    trials((0.5, 2.0), (1e-7, 1.5))
    found = shipped(tmp_path, Block().eval(), candidate(KEEPS), [x])
    assert found.spec.fresh
    assert found.trial.error <= found.spec.error
    assert found.trial.speedup == 1.5


@pytest.mark.slow
def test_kept_values_are_noticed(tmp_path, x, monkeypatch):
    def twice_as_fast(folder, name):  # a loaded machine must not refuse it for its times
        trial = run_trial(folder, name)
        times = {"kernel_us": 10.0, "eager_us": 20.0, "compile_us": 20.0}
        workloads = tuple(replace(each, **times) for each in trial.workloads)
        return replace(trial, workloads=workloads)

    monkeypatch.setattr("adaexplore.ship.ship.run_trial", twice_as_fast)
    assert shipped(tmp_path, Block().eval(), candidate(KEEPS), [x]).spec.fresh


def test_a_winner_that_is_slow_without_kept_values_is_refused(run, tmp_path, trials):
    trials((0.5, 2.0), (1e-7, 0.5))
    with pytest.raises(BadInputError, match=r"computed at every call, its speedup is 0\.50x"):
        ship(run, tmp_path / "package")


@pytest.mark.slow
def test_a_winner_that_folds_weights_when_it_is_built_is_refused(tmp_path, x):
    with pytest.raises(BadInputError, match="it keeps values that it computed from weights"):
        shipped(tmp_path, Block().eval(), candidate(FOLDED), [x])
    assert not (tmp_path / "package").exists()


FILE = """
import torch
from torch import nn



class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x, factor):
        return {"y": torch.relu(self.linear(x)) * factor}


def get_inputs():
    return [torch.rand(4, 8), 2.0]


def get_init_inputs():
    return [8]
"""


def test_a_file_in_kernelbench_form_ships(tmp_path):
    (tmp_path / "scaled.py").write_text(FILE)
    source = FILE.replace("class Model(", "class ModelNew(")
    found = shipped(tmp_path, str(tmp_path / "scaled.py"), source)
    assert found.spec.class_name == "Model"
    assert found.spec.interface.given["factor"] == {"value": 2.0}
    assert not found.spec.fresh


def test_a_module_that_updates_a_buffer_is_refused(tmp_path):
    text = FILE.replace("nn.Linear(width, width)", "nn.BatchNorm1d(width)")
    (tmp_path / "scaled.py").write_text(text)
    with pytest.raises(BadInputError, match=r"updates the buffer linear\.running_mean"):
        shipped(tmp_path, str(tmp_path / "scaled.py"), text.replace("Model(", "ModelNew("))


def test_a_kernel_that_cannot_be_built_is_one_line(tmp_path):
    (tmp_path / "scaled.py").write_text(FILE)
    with pytest.raises(BadInputError, match="cannot be built: no such header; it was verified"):
        shipped(
            tmp_path,
            str(tmp_path / "scaled.py"),
            FILE.replace("class Model(", "raise RuntimeError('no such header')\nclass ModelNew("),
        )


def test_bad_orders_are_one_line(run, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(BadInputError, match="is not empty; give a new folder"):
        ship(run, tmp_path / "full")
    with pytest.raises(BadInputError, match="is a file; give a new folder"):
        ship(run, tmp_path / "full" / "file")
    with pytest.raises(BadInputError, match="no name of a Python package"):
        ship(run, tmp_path / "new", name="a-b")
    for taken in ("class", "json", "torch"):
        with pytest.raises(BadInputError, match=f"--name {taken}: Python or torch has this name"):
            ship(run, tmp_path / "new", name=taken)
    with pytest.raises(BadInputError, match="--license is empty"):
        ship(run, tmp_path / "new", license_name=" ")
    with pytest.raises(BadInputError):
        ship(tmp_path / "none", tmp_path / "new")
