import os
import stat
import textwrap
from pathlib import Path

import pytest

from adaexplore.languages.cuda import toolkit

NVCC = """
    #!/bin/sh
    case "$*" in
        *--version*) echo "Cuda compilation tools, release 13.0, V13.0.88" ;;
        *sm_30*) echo "nvcc fatal   : Unsupported gpu architecture 'compute_30'"; exit 1 ;;
        *sm_31*) echo "trial.cu(2): error: out of luck"; exit 2 ;;
    esac
"""


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text).lstrip())
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def installed(home: Path, headers: str = "include") -> Path:
    program(home / "bin" / "nvcc", NVCC)
    (home / headers).mkdir(parents=True)
    (home / headers / "cuda_runtime.h").touch()
    return home


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine with an empty search path and no toolkit at the usual place."""
    for name in ("CUDA_HOME", "CUDA_PATH", "CXX", "CC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(toolkit, "_USUAL", tmp_path / "usual")
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path / "scripts"))
    return tmp_path


class TestHome:
    def test_without_a_toolkit_there_is_no_folder(self, bare):
        assert toolkit.cuda_home() is None

    def test_the_variable_comes_first_the_usual_place_last(self, bare, monkeypatch):
        usual = installed(bare / "usual")
        assert toolkit.cuda_home() == usual
        named = installed(bare / "named")
        monkeypatch.setenv("CUDA_PATH", str(named))
        assert toolkit.cuda_home() == named

    @pytest.mark.parametrize("headers", ["include", "targets/x86_64-linux/include"])
    def test_links_to_nvcc_on_the_search_path_are_followed(self, bare, headers):
        home = installed(bare / "cuda-13", headers)
        (bare / "path").mkdir()
        (bare / "path" / "nvcc").symlink_to(home / "bin" / "nvcc")
        assert toolkit.cuda_home() == home

    def test_a_wrapper_script_of_nvcc_is_not_a_toolkit(self, bare):
        program(bare / "local" / "bin" / "nvcc")
        (bare / "path").symlink_to(bare / "local" / "bin")
        assert toolkit.cuda_home() is None
        assert toolkit.cuda_home() != installed(bare / "usual") == toolkit.cuda_home()


class TestLacking:
    def test_each_missing_part_is_reported(self, bare):
        assert "nvcc is not there" in toolkit.lacking()
        assert "set CUDA_HOME" in toolkit.lacking()
        installed(bare / "usual")
        assert "no C++ compiler (c++) is there" in toolkit.lacking()
        program(bare / "path" / "c++")
        assert "pip install ninja" in toolkit.lacking()
        program(bare / "scripts" / "ninja")
        assert toolkit.lacking() is None

    def test_a_variable_that_names_no_toolkit_is_reported(self, bare, monkeypatch):
        installed(bare / "usual")
        monkeypatch.setenv("CUDA_HOME", "/gone")
        assert toolkit.lacking().startswith("CUDA_HOME=/gone is no CUDA toolkit")

    def test_the_report_is_one_line(self, bare):
        assert "\n" not in toolkit.lacking()


def test_workers_build_with_the_toolkit_that_was_found(bare, monkeypatch):
    home = installed(bare / "usual")
    monkeypatch.setattr(os, "environ", dict(os.environ))
    toolkit.use_toolkit()
    assert os.environ["CUDA_HOME"] == str(home)
    assert os.environ["PATH"] == f"{bare / 'path'}:{bare / 'scripts'}"


def test_one_architecture_is_built_for():
    assert toolkit.building_for((9, 0)) == {"TORCH_CUDA_ARCH_LIST": "9.0"}


class TestTrying:
    @pytest.fixture
    def said(self, bare, monkeypatch):
        installed(bare / "usual")
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
        monkeypatch.chdir(bare)
        return lambda capability: toolkit.try_building({"compute_capability": capability})

    def test_a_working_compiler_reports_its_version(self, said):
        assert said("9.0") == {"unusable": "", "versions": {"nvcc": "13.0.88"}}

    @pytest.mark.parametrize(
        ("capability", "words"),
        [
            ("3.0", "does not build for sm_30: nvcc fatal   : Unsupported gpu architecture"),
            ("3.1", "does not build for sm_31: trial.cu(2): error: out of luck"),
        ],
    )
    def test_the_error_of_a_failing_compiler_is_quoted(self, said, capability, words):
        assert words in said(capability)["unusable"]

    def test_a_compiler_that_cannot_run_is_reported(self, said, bare):
        (bare / "usual" / "bin" / "nvcc").chmod(0o600)
        assert "does not run: " in said("9.0")["unusable"]
