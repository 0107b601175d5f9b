from __future__ import annotations

import os
import tempfile

import pytest

from adaexplore.evaluate.kernels.build.compile_cache import share_compiled
from adaexplore.sandbox.walls import landlock

NAMES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


@pytest.fixture(autouse=True)
def _own_caches(monkeypatch):
    for name in NAMES:
        monkeypatch.setenv(name, "own")


def test_the_cache_lies_in_the_users_home(tmp_path, monkeypatch):
    monkeypatch.setattr(landlock, "version", lambda: 1)
    folder = share_compiled(tmp_path)
    assert folder is not None
    assert folder.is_relative_to(tmp_path)
    assert folder.stat().st_mode & 0o077 == 0
    assert all(os.environ[name].startswith(str(folder)) for name in NAMES)


def test_without_landlock_no_cache_is_shared(tmp_path, monkeypatch):
    monkeypatch.setattr(landlock, "version", lambda: 0)
    assert share_compiled(tmp_path) is None
    assert not any(tmp_path.iterdir())
    assert {os.environ[name] for name in NAMES} == {"own"}


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(landlock, "version", lambda: 1)
    folder = share_compiled(tmp_path)
    folder.chmod(0o777)
    for name in NAMES:
        monkeypatch.setenv(name, "own")
    assert share_compiled(tmp_path) is None
    assert {os.environ[name] for name in NAMES} == {"own"}


def test_a_read_only_home_raises_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr(landlock, "version", lambda: 1)
    home = tmp_path / "file"
    home.write_text("")
    assert share_compiled(home) is None


def test_a_process_that_cannot_write_there_has_a_cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(landlock, "version", lambda: 1)
    assert share_compiled(tmp_path) is not None  # the folder is there, from a run without walls
    for name in NAMES:
        monkeypatch.setenv(name, "own")
    monkeypatch.setattr(tempfile, "mkdtemp", _denied)
    assert share_compiled(tmp_path) is None
    assert {os.environ[name] for name in NAMES} == {"own"}


def _denied(*_, **__):
    raise PermissionError
