import sys

import pytest

from adaexplore.evaluate.kernels.build import helion_host


@pytest.mark.parametrize("package", ["helion", "triton"])
def test_a_missing_package_is_named_with_its_remedy(monkeypatch, package):
    monkeypatch.setattr(helion_host, "find_spec", lambda name: None if name == package else name)
    assert helion_host.lacking() == f"{package} cannot be imported; pip install {package}"


def test_nothing_is_lacking_where_both_are_there(monkeypatch):
    monkeypatch.setattr(helion_host, "find_spec", lambda name: name)
    assert helion_host.lacking() is None


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs a package of the name and, at its import, of the behaviour given."""

    def installed(code):
        (tmp_path / "helion.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "helion", raising=False)
        monkeypatch.setattr(helion_host, "version", lambda _: "9.9")
        monkeypatch.chdir(tmp_path)

    return installed


def test_one_for_another_pytorch_is_told_in_a_line(installed):
    installed("raise ImportError('cannot import name X\\nand more')")
    told = helion_host.try_generating({})["unusable"]
    assert told.startswith("Helion 9.9 does not work with torch ")
    assert told.endswith("install a version for it (ImportError: cannot import name X)")


def test_one_that_cannot_be_imported_does_not_keep_the_server_from_starting(installed):
    installed("raise AttributeError('torch has no such thing')")
    helion_host.load()


def test_one_that_works_is_known_by_its_version(tmp_path, monkeypatch):
    helion = pytest.importorskip("helion")
    monkeypatch.chdir(tmp_path)
    assert helion_host.try_generating({})["versions"]["helion"].split(".")[0].isdigit(), helion
