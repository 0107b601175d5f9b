import sys
import sysconfig
from pathlib import Path

import pytest

import adaexplore
from adaexplore.sandbox.walls import namespaces, paths
from adaexplore.sandbox.walls.paths import rules


@pytest.fixture
def programs(monkeypatch):
    """Return the readable folders for a working directory and a search path."""

    sysconfig.get_config_vars()  # is read from the search path, once

    def programs(working: Path, searched: list[Path]) -> list[Path]:
        monkeypatch.chdir(working)
        monkeypatch.setattr(sys, "path", [str(path) for path in searched])
        paths.programs.cache_clear()
        return paths.programs()

    yield programs
    paths.programs.cache_clear()


def readable(path: Path, programs: list[Path]) -> bool:
    return any(path.is_relative_to(program) for program in programs)


@pytest.fixture
def tree(tmp_path):
    for folder in ("library/package", "library/work/run", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "library" / "link").symlink_to(tmp_path / "library" / "work")
    return tmp_path


def test_the_search_path_may_be_read(programs, tree):
    found = programs(tree / "elsewhere", [tree / "library"])
    assert readable(tree / "library" / "work", found)


def test_the_working_directory_may_not(programs, tree):
    found = programs(tree / "elsewhere", [tree / "elsewhere", tree / "library"])
    assert not readable(tree / "elsewhere", found)
    assert readable(tree / "library", found)


def test_of_a_folder_that_holds_it_the_rest_may_be_read(programs, tree):
    found = programs(tree / "library" / "work", [tree / "library"])
    assert readable(tree / "library" / "package", found)
    assert not readable(tree / "library" / "work" / "run", found)
    assert not readable(tree / "library", found)


def test_home_and_the_temporary_folder_may_not(programs, tree):
    found = programs(tree, [Path.home(), Path("/"), Path("/tmp")])
    for private in (Path.home(), Path("/tmp"), Path("/")):
        assert not readable(private, found)


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("own_memory", [False, True])
def test_shared_memory_is_for_gpus_or_where_it_is_ones_own(monkeypatch, tmp_path, gpu, own_memory):
    monkeypatch.setattr(namespaces, "entered", lambda: own_memory)
    paths = [path for path, _ in rules(tmp_path, tmp_path, gpu=gpu)]
    assert (Path("/dev/shm") in paths) == (gpu or own_memory)
    assert (Path("/proc/self") in paths) == gpu


def test_the_interpreter_and_this_package_may_wherever_one_works(programs):
    package = Path(adaexplore.__file__).parent
    found = programs(package, [])
    assert readable(package, found)
    assert readable(Path(sys.executable).resolve(), found)
    assert readable(Path(pytest.__file__), found)
