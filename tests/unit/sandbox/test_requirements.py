from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.sandbox import requirements
from adaexplore.sandbox.requirements import require_versions

ROOT = Path(__file__).parents[3]


@pytest.fixture
def installed(monkeypatch):
    """Pretend that these versions are installed, and nothing else."""

    def use(**versions):
        def version(package):
            if package not in versions:
                raise PackageNotFoundError(package)
            return versions[package]

        monkeypatch.setattr(requirements, "version", version)

    return use


def complaint(*, triton=False):
    with pytest.raises(BadInputError) as caught:
        require_versions(triton=triton)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_missing_torch_is_one_line(installed):
    installed()
    assert complaint().startswith("torch is not installed: pip install 'torch>=2.11'")


@pytest.mark.parametrize("old", ["2.4.1", "2.7.0+cu126", "1.13"])
def test_an_old_torch_is_named_with_the_minimum(installed, old):
    installed(torch=old)
    assert complaint() == f"torch {old} is too old: adaexplore needs torch 2.11 or newer"


def test_triton_is_checked_where_it_is_needed_or_installed(installed):
    installed(torch="2.13.0+cpu")
    require_versions(triton=False)
    assert complaint(triton=True).startswith("triton is not installed")
    installed(torch="2.13.0+cpu", triton="3.2.0")
    assert complaint() == "triton 3.2.0 is too old: adaexplore needs triton 3.6 or newer"


def test_new_versions_pass(installed):
    installed(torch="2.11.0", triton="3.6.0")
    require_versions(triton=True)
    installed(torch="3.0.0a1", triton="10.0")
    require_versions(triton=True)


@pytest.mark.parametrize("file", ["README.md", "pyproject.toml"])
def test_the_minimum_is_stated(file):
    text = (ROOT / file).read_text()
    assert "PyTorch 2.11" in text
    assert "Triton 3.6" in text
