import sys

import pytest

from adaexplore.languages.helion import host as helion_host


@pytest.mark.parametrize("package", ["helion", "triton"])
def test_a_missing_package_is_named_with_its_remedy(monkeypatch, package):
    monkeypatch.setattr(helion_host, "find_spec", lambda name: None if name == package else name)
    assert helion_host.lacking() == f"{package} cannot be imported; pip install {package}"


def test_nothing_lacks_if_both_packages_are_installed(monkeypatch):
    monkeypatch.setattr(helion_host, "find_spec", lambda name: name)
    assert helion_host.lacking() is None


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A function that installs a package with a given name and behaviour at import."""

    def installed(code):
        (tmp_path / "helion.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "helion", raising=False)
        monkeypatch.setattr(helion_host, "version", lambda _: "9.9")
        monkeypatch.chdir(tmp_path)

    return installed


def test_a_helion_for_another_pytorch_is_reported_in_one_line(installed):
    installed("raise ImportError('cannot import name X\\nand more')")
    told = helion_host.try_generating({})["unusable"]
    assert told.startswith("Helion 9.9 does not work with torch ")
    assert told.endswith("install a version for it (ImportError: cannot import name X)")


def test_a_failing_import_of_helion_does_not_stop_the_server(installed):
    installed("raise AttributeError('torch has no such thing')")
    helion_host.load()


def test_a_working_helion_reports_its_version(tmp_path, monkeypatch):
    helion = pytest.importorskip("helion")
    monkeypatch.chdir(tmp_path)
    assert helion_host.try_generating({})["versions"]["helion"].split(".")[0].isdigit(), helion
