"""Samples, lists and tests of mutants in a small repository."""

import pytest

from adaexplore.core import BadInputError
from adaexplore_lab.mutate import choose, listed
from adaexplore_lab.mutate.mutants import mutants
from adaexplore_lab.mutate.which_tests import WhichTests

SOURCE = "".join(f"a{i} = {i}\n" for i in range(40))


def lines(found):
    return [mutant.line for mutant in found]


def test_a_sample_depends_on_the_seed_and_hardly_on_the_source():
    population = mutants("a.py", SOURCE)
    first = choose.sample(population, 10, seed=1)
    assert len(set(lines(first))) == 10
    assert choose.sample(population, 10, seed=1) == first
    assert choose.sample(population, 10, seed=2) != first
    one_less = [mutant for mutant in population if mutant != first[3]]
    assert choose.sample(one_less, 9, seed=1) == [m for m in first if m != first[3]]
    assert sorted(lines(choose.sample(population, None, seed=1))) == list(range(1, 41))


def test_targets_take_turns():
    few, many = mutants("a.py", "a = 1\n"), mutants("b.py", "a = 1\nb = 2\nc = 3\n")
    assert [m.path for m in choose.in_turn([few, many])] == ["a.py", "b.py", "b.py", "b.py"]


def test_a_folder_has_the_mutants_of_its_modules(file, tmp_path):
    file("a.py", "a = 1\n")
    file("b.py", "b = 2\n")
    found = choose.mutants_of("", tmp_path)
    assert [(m.path, m.added) for m in found] == [("a.py", "a = 2"), ("b.py", "b = 3")]
    with pytest.raises(BadInputError, match=r"no Python module is at .*c\.py"):
        choose.mutants_of("c.py", tmp_path)


NAMED = '[[mutant]]\nname = "less"\nfile = "a.py"\nold = "a = 1"\nnew = "a = 0"\n'


def test_a_named_mutant_replaces_its_text(file, tmp_path):
    file("a.py", "b = 2\na = 1\n")
    [mutant] = listed.named(file("named.toml", NAMED), tmp_path)
    assert (mutant.source, mutant.line) == ("b = 2\na = 0\n", 2)
    assert mutant.told().startswith("a.py:2 module: less")


@pytest.mark.parametrize(
    ("source", "entries", "complaint"),
    [
        ("b = 2\n", NAMED, "is 0 times in a.py, not once"),
        ("a = 1\na = 1\n", NAMED, "is 2 times in a.py, not once"),
        ("a = 1\n", "[[mutant]]\nname = 'x'\n", "has no text 'file'"),
        ("a = 1\n", "[[mutant", "cannot read"),
    ],
)
def test_a_named_mutant_that_no_longer_fits_is_an_error(file, tmp_path, source, entries, complaint):
    file("a.py", source)
    with pytest.raises(BadInputError, match=complaint):
        listed.named(file("named.toml", entries), tmp_path)


EQUIVALENT = (
    '[[equivalent]]\nfile = "a.py"\nfunction = "f"\nold = "return a < 3"\nnew = "{}"\nreason = "x"'
)


def test_an_equivalent_mutant_is_found_by_its_lines(file):
    population = mutants("a.py", "def f(a):\n    return a < 3\n")
    entries = file("equivalent.toml", EQUIVALENT.format("return a <= 3"))
    [identity] = listed.equivalent(entries, population)
    assert [m.added.strip() for m in population if m.identity == identity] == ["return a <= 3"]


def test_an_equivalent_mutant_that_no_longer_exists_is_an_error(file):
    population = mutants("a.py", "def f(a):\n    return a < 3\n")
    entries = file("equivalent.toml", EQUIVALENT.format("return a > 3"))
    with pytest.raises(BadInputError, match="no mutant fits this entry any more"):
        listed.equivalent(entries, population)
    assert listed.equivalent(entries, mutants("b.py", "a = 1\n")) == set()  # not mutated now


@pytest.mark.parametrize(
    ("entry", "count"),
    [("", 2), ('function = "f"', 1), ('function = "f"\nold = "return 1"\nnew = "return 2"', 1)],
)
def test_mutants_for_a_gpu_are_those_of_a_file_a_function_or_a_line(file, entry, count):
    population = mutants("a.py", "def f():\n    return 1\n\n\ndef g(b):\n    c(b)\n    return b\n")
    population += mutants("b.py", "b = 2\n")
    population = [m for m in population if m.added.strip() != "pass"]
    entries = file("gpu.toml", f'[[gpu]]\nfile = "a.py"\n{entry}\nreason = "x"\n')
    assert len(listed.on_gpu(entries, population)) == count


def test_the_tests_of_a_module_mirror_it_or_import_it_or_are_listed(file, tmp_path):
    (tmp_path / "tests/unit/search").mkdir(parents=True)
    file("tests/unit/search/test_pool.py", "")
    file("tests/unit/search/test_deep.py", "from adaexplore.search import pool\n")
    file("tests/unit/search/test_last.py", "")
    file("tests/unit/search/test_other.py", "from adaexplore.search import uct\n")
    table = {"search": ["tests/unit/search"], "search/pool": ["tests/unit/search/test_other.py"]}
    assert WhichTests(tmp_path, table).of("src/adaexplore/search/pool.py") == [
        "tests/unit/search/test_pool.py",
        "tests/unit/search/test_deep.py",
        "tests/unit/search/test_other.py",
        "tests/unit/search/test_last.py",
    ]
    with pytest.raises(BadInputError, match=r"no test is at .*gone"):
        WhichTests(tmp_path, {"search": ["tests/gone"]})
