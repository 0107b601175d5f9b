"""The lists of mutants fit the source as it is."""

from pathlib import Path

import pytest

from adaexplore_lab.mutate import choose, listed
from adaexplore_lab.mutate.which_tests import WhichTests

ROOT = Path(__file__).parents[3]
LISTS = ROOT / "lab" / "mutants"


def population(table):
    files = listed.files(LISTS / f"{table}.toml", table)
    return [mutant for file in files for mutant in choose.mutants_of(file, ROOT)]


def test_every_named_mutant_fits_its_file_and_has_tests():
    tests = WhichTests(ROOT, listed.plan(LISTS / "mutate.toml").tests)
    for mutant in listed.named(LISTS / "named.toml", ROOT):
        assert tests.of(mutant.path), mutant.path


@pytest.mark.slow
def test_every_equivalent_mutant_is_one_of_its_file():
    listed.equivalent(LISTS / "equivalent.toml", population("equivalent"))


@pytest.mark.slow
def test_every_mutant_that_needs_a_gpu_is_one_of_its_file():
    listed.on_gpu(LISTS / "gpu.toml", population("gpu"))


def test_every_target_exists():
    assert all((ROOT / path).exists() for path in listed.plan(LISTS / "mutate.toml").targets)
