"""What a user may get wrong: exit code 2, one line that says what, where and how to mend it."""

import ctypes
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from adaexplore.core.environment import Environment
from adaexplore.core.problem import Problem
from adaexplore.core.settings.config import Config
from adaexplore.languages.helion import host as helion_host
from adaexplore.store import FORMAT_VERSION, RunRecord, create_run, open_run

RECORDED = Path(__file__).parents[2] / "replay" / "h200_l2_94_a.json.xz"
PARTS = {
    "head": "import torch\nfrom torch import nn\n",
    "model": "class Model(nn.Module):\n    def forward(self, x):\n        return x + 1\n",
    "inputs": "def get_inputs():\n    return [torch.randn(8, 8)]\n",
}


def written(**changed: str) -> str:
    return "".join((PARTS | changed).values())


def forward(body: str) -> str:
    return written(model=f"class Model(nn.Module):\n    def forward(self, x):\n        {body}\n")


@pytest.fixture
def run_path(tmp_path):
    """A run directory with nothing recorded yet."""
    record = RunRecord(
        problem=Problem("example", written(), "cpp", "cpu"),
        config=Config(seed=0, steps=3),
        proposers=("compiler",),
        environment=Environment(),
        command="adaexplore explore example.py",
        created_at=0.0,
    )
    create_run(tmp_path / "run", record).close()
    return tmp_path / "run"


class TestCommandLine:
    @pytest.mark.parametrize(
        ("words", "complaint"),
        [
            ("nosuch", "no such command 'nosuch' (adaexplore --help)"),
            (
                "memory lsit",
                "no such command 'lsit'. Did you mean 'list'? (adaexplore memory --help)",
            ),
            ("show", "missing argument 'RUN' (adaexplore show --help)"),
            ("explore --nosuch", "no such option: --nosuch (adaexplore explore --help)"),
            ("show a b", "got unexpected extra argument(s) (b) (adaexplore show --help)"),
            (
                "explore x --precision fp99",
                "invalid value for '--precision': 'fp99' is not one of 'fp32', 'tf32', 'half' "
                "(adaexplore explore --help)",
            ),
        ],
    )
    def test_what_cannot_be_read(self, adaexplore, words, complaint):
        assert adaexplore(*words.split()).complaint == f"adaexplore: {complaint}"

    @pytest.mark.parametrize("option", ["--preset", "--language", "--mode", "--target", "--steps"])
    def test_a_value_that_an_option_does_not_know(self, adaexplore, option):
        line = adaexplore("explore", "x.py", option, "nosuch").complaint
        assert line.startswith(f"adaexplore: invalid value for '{option}': ")

    @pytest.mark.parametrize("words", ["", "memory"])
    def test_where_a_command_is_missing_the_help_lists_them(self, adaexplore, words):
        result = adaexplore(*words.split())
        assert (result.code, result.out) == (2, "")
        assert f"Usage: adaexplore {words}".rstrip() in result.err
        assert "Commands:" in result.err


class TestOtherFolders:
    """The run is at fault before what it is exported to."""

    @pytest.mark.parametrize("option", ["--flashinfer", "--sol", "--kernelbench", "--predictions"])
    def test_an_export_of_what_is_not_there(self, adaexplore, tmp_path, option):
        line = adaexplore("export", tmp_path / "gone", option, tmp_path / "x").complaint
        assert "gone is not a run directory: it does not exist" in line

    def test_an_export_of_what_is_no_run(self, adaexplore, tmp_path):
        line = adaexplore("export", tmp_path, "--flashinfer", tmp_path / "x").complaint
        assert "is not a run directory: there is no run.db in it" in line

    def test_a_dataset_without_definitions(self, adaexplore, run_path, tmp_path):
        line = adaexplore("export", run_path, "--flashinfer", tmp_path / "x").complaint
        assert line.endswith("x holds no definitions; name the dataset with --dataset")


class TestProblemFile:
    @pytest.mark.parametrize("command", ["explore", "evaluate"])
    def test_a_missing_one(self, adaexplore, tmp_path, candidate, command):
        words = [command, tmp_path / "gone.py", *([candidate] if command == "evaluate" else [])]
        assert "gone.py: no such file" in adaexplore(*words).complaint

    @pytest.mark.parametrize("command", ["explore", "evaluate"])
    def test_an_empty_path(self, adaexplore, candidate, command):
        words = [command, "", *([candidate] if command == "evaluate" else [])]
        assert "the path of the problem is empty" in adaexplore(*words).complaint

    @pytest.mark.parametrize(
        ("source", "words"),
        [
            ("class Model(:\n", "line 1, column 13: syntax error"),
            (written(model=""), "defines no Model"),
            (written(model="class Modle: ...\n"), "Modle at line 3"),
            (written(inputs=""), "defines no get_inputs"),
            ("", "is empty"),
        ],
    )
    def test_one_that_can_be_seen_to_be_wrong(self, adaexplore, file, source, words):
        line = adaexplore("explore", file("wrong.py", source), "--device", "cpu").complaint
        assert "wrong.py" in line
        assert words in line

    @pytest.mark.parametrize(
        ("source", "words"),
        [
            (written(inputs="def get_inputs():\n    raise OSError('gone')\n"), "OSError: gone"),
            pytest.param(
                forward("raise ValueError('no')"),
                "line 5: forward() raised ValueError: no",
                marks=pytest.mark.slow,
            ),
            (forward("return x * float('nan')"), "output is NaN in all of its 64 elements"),
            pytest.param(forward("return 'text'"), "return tensors", marks=pytest.mark.slow),
            pytest.param(forward("return None"), "return tensors", marks=pytest.mark.slow),
            pytest.param(
                forward("return torch.rand_like(x)"),
                "differs between two runs",
                marks=pytest.mark.slow,
            ),
            pytest.param(
                forward("return x.new_ones(200 * 2**30)"),
                "too large for the device",
                marks=pytest.mark.slow,
            ),
        ],
    )
    def test_one_that_must_be_run_to_tell(self, adaexplore, file, candidate, source, words):
        path = file("wrong.py", source)
        result = adaexplore("evaluate", path, candidate, "--device", "cpu", "--json")
        assert result.code == 2
        assert result.out == ""
        line = result.err.splitlines()[-1]
        assert line.startswith("adaexplore: wrong.py")
        assert words in line
        assert "Traceback" not in result.err

    def test_a_missing_candidate(self, adaexplore, problem, tmp_path):
        result = adaexplore("evaluate", problem, tmp_path / "gone.py", "--device", "cpu")
        assert "gone.py: cannot read the candidate: No such file" in result.complaint


class TestOptions:
    @pytest.fixture
    def no_gpu(self, monkeypatch):
        def missing(name):
            raise OSError(name)

        monkeypatch.setattr(ctypes, "CDLL", missing)

    def test_cuda_where_there_is_none(self, adaexplore, problem, no_gpu):
        line = adaexplore("explore", problem, "--device", "cuda").complaint
        assert "--device cuda: no such GPU; there is none on this machine" in line
        assert "--device cpu" in line

    def test_a_device_that_is_none(self, adaexplore, problem):
        line = adaexplore("explore", problem, "--device", "tpu").complaint
        assert "--device tpu: write cpu, cuda or cuda:<index>" in line

    def test_a_language_that_does_not_run_there(self, adaexplore, problem, monkeypatch):
        monkeypatch.setattr("adaexplore.run.session._gpu_count", lambda: 1)
        words = ["explore", problem, "--device", "cuda", "--language", "cpp"]
        assert "cpp needs cpu" in adaexplore(*words).complaint

    def test_cuda_kernels_without_a_gpu(self, adaexplore, problem):
        words = ["explore", problem, "--device", "cpu", "--language", "cuda"]
        line = adaexplore(*words).complaint
        assert "--language cuda does not run on --device cpu" in line
        assert "cuda needs a GPU (--device cuda)" in line

    def test_tf32_where_there_is_none(self, adaexplore, problem):
        line = adaexplore("explore", problem, "--device", "cpu", "--precision", "tf32").complaint
        assert "--precision tf32: there is no TF32 on --device cpu" in line
        assert "fp32 or half" in line

    def test_a_backward_pass_from_the_compiler(self, adaexplore, problem):
        line = adaexplore("explore", problem, "--device", "cpu", "--with-backward").complaint
        assert "what TorchInductor writes here has no backward pass" in line
        assert "--proposer manual" in line

    @pytest.fixture
    def cuda(self, problem, monkeypatch):
        monkeypatch.setattr("adaexplore.run.session._gpu_count", lambda: 1)
        return [problem, "--device", "cuda", "--language", "cuda"]

    def test_cuda_kernels_from_the_compiler(self, adaexplore, cuda):
        line = adaexplore("explore", *cuda).complaint
        assert "TorchInductor writes no CUDA C++; give a --model" in line
        assert "--proposer manual" in line

    def test_cuda_kernels_as_seeds_from_the_compiler(self, adaexplore, cuda):
        line = adaexplore(
            "explore", *cuda, "--proposer", "manual", "--set", "compiler_seeds=1"
        ).complaint
        assert "TorchInductor writes no CUDA C++" in line

    @pytest.mark.parametrize("command", ["explore", "evaluate"])
    def test_cuda_kernels_without_nvcc(
        self, adaexplore, cuda, candidate, monkeypatch, tmp_path, command
    ):
        monkeypatch.setenv("CUDA_HOME", str(tmp_path))
        beside = {"evaluate": [candidate], "explore": ["--proposer", "manual"]}[command]
        words = [command, cuda[0], *beside, *cuda[1:]]
        result = adaexplore(*words)
        assert result.code == 2
        line = result.err.splitlines()[-1]
        assert f"--language cuda: CUDA_HOME={tmp_path} is no CUDA toolkit" in line

    @pytest.fixture
    def helion(self, cuda):
        return [*cuda[:-1], "helion"]

    def test_helion_kernels_from_the_compiler(self, adaexplore, helion):
        line = adaexplore("explore", *helion).complaint
        assert "TorchInductor writes no Helion; give a --model" in line

    @pytest.mark.parametrize("package", ["helion", "triton"])
    def test_helion_kernels_without_what_they_need(
        self, adaexplore, helion, candidate, monkeypatch, package
    ):
        monkeypatch.setattr(
            helion_host,
            "find_spec",
            lambda name: None if name == package else name,
        )
        result = adaexplore("evaluate", helion[0], candidate, *helion[1:])
        assert result.code == 2
        line = result.err.splitlines()[-1]
        assert f"--language helion: {package} cannot be imported; pip install {package}" in line

    def test_a_target_beside_a_gpu(self, adaexplore, problem, monkeypatch):
        monkeypatch.setattr("adaexplore.run.session._gpu_count", lambda: 1)
        words = ["explore", problem, "--device", "cuda", "--target", "sm_90"]
        line = adaexplore(*words).complaint
        assert "--target sm_90: on --device cuda:0 kernels are compiled for that GPU" in line

    def test_a_target_for_cpp(self, adaexplore, problem):
        words = ["explore", problem, "--target", "sm_90", "--language", "cpp"]
        line = adaexplore(*words).complaint
        assert "--target sm_90: only --language triton, gluon, helion, cutedsl have one" in line

    def test_a_target_that_is_not_known(self, adaexplore, problem):
        result = adaexplore("explore", problem, "--target", "sm_75")
        assert result.code == 2
        assert "'sm_80', 'sm_90', 'sm_100'" in result.err

    @pytest.mark.parametrize("package", ["triton", "numpy"])
    def test_a_target_without_what_it_needs(self, adaexplore, problem, monkeypatch, package):
        monkeypatch.setattr(
            "adaexplore.run.session.find_spec", lambda name: None if name == package else name
        )
        line = adaexplore("explore", problem, "--target", "sm_90").complaint
        assert f"{package} cannot be imported; pip install {package}" in line

    def test_a_proposer_that_needs_the_gpu(self, adaexplore, problem):
        line = adaexplore("explore", problem, "--target", "sm_90").complaint
        assert "--proposer compiler: TorchInductor writes Triton only where there is a GPU" in line

    @pytest.mark.parametrize(
        ("pair", "words"),
        [
            ("timout_s=5", "did you mean timeout_s or "),
            ("c=high", "--set c=high: Input should be a valid number"),
            ("c", "write it as key=value"),
        ],
    )
    def test_settings(self, adaexplore, problem, pair, words):
        assert words in adaexplore("explore", problem, "--set", pair).complaint


class TestRunDirectory:
    @pytest.mark.parametrize("command", ["resume", "show", "report"])
    def test_one_that_is_none(self, adaexplore, tmp_path, command):
        assert "there is no run.db in it" in adaexplore(command, tmp_path).complaint
        assert "does not exist" in adaexplore(command, tmp_path / "gone").complaint

    @pytest.mark.parametrize("command", ["resume", "show", "report"])
    def test_one_from_a_newer_version(self, adaexplore, run_path, command):
        with sqlite3.connect(run_path / "run.db") as database:
            database.execute("UPDATE run SET format_version = ?", [FORMAT_VERSION + 1])
        database.close()
        line = adaexplore(command, run_path).complaint
        assert f"is in run format {FORMAT_VERSION + 1}" in line
        assert "upgrade" in line

    def test_one_in_use_by_another_process(self, adaexplore, run_path):
        with open_run(run_path):
            assert "is in use by another process" in adaexplore("resume", run_path).complaint
            assert adaexplore("show", run_path).code == 0

    def test_one_that_is_there_already(self, adaexplore, problem, run_path):
        before = (run_path / "run.db").read_bytes()
        result = adaexplore("explore", problem, "--device", "cpu", "--run", run_path)
        assert result.code == 2
        assert "exists and is not empty" in result.err
        assert (run_path / "run.db").read_bytes() == before

    def test_a_report_that_cannot_be_written(self, adaexplore, run_path):
        line = adaexplore("report", run_path, "-o", run_path / "no" / "such" / "r.html").complaint
        assert "cannot write" in line

    def test_a_report_on_a_full_disk_leaves_the_older_one(
        self, adaexplore, run_path, tmp_path, fill_disk
    ):
        report = tmp_path / "out" / "r.html"
        report.parent.mkdir()
        report.write_text("older")
        fill_disk()
        line = adaexplore("report", run_path, "-o", report).complaint
        assert line.endswith(f"cannot write {report}: No space left on device")
        assert report.read_text() == "older"
        assert list(report.parent.iterdir()) == [report]

    def test_shipping_one_says_what_takes_so_long(self, adaexplore, run_path, tmp_path):
        result = adaexplore("ship", run_path, "-o", tmp_path / "package")
        first, second, last = result.err.splitlines()
        assert (result.code, result.out) == (2, "")
        assert first == "importing torch"
        assert "trying the kernel on every workload" in second
        assert last.endswith("has no correct kernel yet")


MAIN = "from adaexplore.cli import main; main()"
PRINTING = ["settings", "memory list", "show RUN", "--version"]


class TestOutput:
    @pytest.fixture
    def printed(self, run_path):
        """Run a command in a process of its own, with its output somewhere."""

        def printed(words, **streams):
            words = [str(run_path) if word == "RUN" else word for word in words.split()]
            return subprocess.run(
                [sys.executable, "-c", MAIN, *words],
                stderr=subprocess.PIPE,
                text=True,
                **streams,
            )

        return printed

    @pytest.mark.parametrize("words", PRINTING)
    def test_a_full_disk(self, printed, words):
        with Path("/dev/full").open("w") as full:
            done = printed(words, stdout=full)
        line = "adaexplore: cannot write: No space left on device; free some space\n"
        assert (done.returncode, done.stderr) == (3, line)

    @pytest.mark.parametrize("words", PRINTING)
    def test_a_pipe_that_nobody_reads(self, printed, words):
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "w") as closed:
            done = printed(words, stdout=closed)
        assert (done.returncode, done.stderr) == (141, "")

    def test_an_encoding_without_the_characters(self, printed):
        env = {**os.environ, "PYTHONIOENCODING": "ascii"}
        done = printed(f"show {RECORDED}", stdout=subprocess.PIPE, env=env)
        assert (done.returncode, done.stderr) == (0, "")
        assert "1.83?" in done.stdout


WARNS = """
import logging, sys, warnings
from adaexplore.cli import main
from adaexplore.cli.terminal import printing

def show_table(_):
    warnings.warn("soon to be removed", FutureWarning)
    logging.getLogger("some.library").warning("something is odd")

printing.show_table = show_table
sys.argv = ["adaexplore", "settings"]
main()
"""


def test_what_libraries_warn_of_is_not_the_user_s():
    def said(*options):
        words = [sys.executable, *options, "-c", WARNS]
        return subprocess.run(words, check=True, capture_output=True, text=True).stderr

    assert said() == ""
    assert "soon to be removed" in said("-W", "default")


def test_pages_of_a_folder_that_is_not_there(adaexplore):
    result = adaexplore("ui", "nowhere")
    assert result.code == 2
    assert result.err == "adaexplore: nowhere: no such folder; name one that holds runs\n"
