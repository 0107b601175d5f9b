"""The command on a small repository, with real tests in real copies."""

import json
import subprocess

import pytest

SOURCE = """
def clipped(a):
    return min(a, 3)


def doubled(a):
    return max(a, a) + a
"""
TESTS = """
from adaexplore.small import clipped


def test_clipped():
    assert clipped(5) == 3
    assert clipped(2) == 2
"""
CONFTEST = 'import hypothesis\n\nhypothesis.settings.register_profile("mutants")\n'
MORE = """

def test_doubled():
    from adaexplore.small import doubled

    assert doubled(2) == 4
"""
PLAN = """
targets = ["src/adaexplore"]
[tests]
small = []
"""
NAMED = """
[[mutant]]
name = "a limit of four"
file = "src/adaexplore/small.py"
old = "min(a, 3)"
new = "min(a, 4)"
"""
EQUIVALENT = """
[[equivalent]]
file = "src/adaexplore/small.py"
function = "doubled"
old = "return max(a, a) + a"
new = "return min(a, a) + a"
reason = "The smaller of two equal numbers is the larger."
"""


@pytest.fixture
def root(file, tmp_path):
    for folder in ("src/adaexplore", "tests/unit", "lab/mutants"):
        (tmp_path / folder).mkdir(parents=True)
    file("src/adaexplore/__init__.py", "")
    file("src/adaexplore/small.py", SOURCE)
    file("tests/conftest.py", CONFTEST)
    file("tests/unit/test_small.py", TESTS)
    file("lab/mutants/mutate.toml", PLAN)
    file("lab/mutants/named.toml", NAMED)
    file("lab/mutants/equivalent.toml", "")
    file("lab/mutants/gpu.toml", "")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


@pytest.fixture
def mutate(lab, root):
    def mutate(*options):
        paths = ("--root", root, "--outcomes", root / "o.jsonl", "-o", root / "o.json")
        result = lab("mutate", *paths, *options)
        return result, json.loads((root / "o.json").read_text())

    return mutate


SURVIVING = """
[[mutant]]
name = "nothing is added"
file = "src/adaexplore/small.py"
old = "max(a, a) + a"
new = "max(a, a) + 0"
"""


@pytest.mark.slow
def test_a_named_survivor_is_told_and_fails_the_run(mutate, root):
    (root / "lab/mutants/named.toml").write_text(NAMED + SURVIVING)
    result, record = mutate("--sample", "0")
    assert result.code == 1
    assert (record["scores"]["named"]["killed"], record["scores"]["named"]["score"]) == (1, 0.5)
    [survivor] = record["survivors"]
    head = "src/adaexplore/small.py:7 module: nothing is added"
    assert survivor == {"fate": "survived", "mutant": [head, "-max(a, a) + a", "+max(a, a) + 0"]}
    assert (root / "src/adaexplore/small.py").read_text() == SOURCE


@pytest.mark.slow
@pytest.mark.slow
def test_survivors_are_told_and_the_run_goes_on_where_it_ended(mutate, root):
    result, record = mutate()
    assert result.code == 1
    assert record["scores"]["named"] == {
        **{"mutants": 1, "tried": 1, "killed": 1, "late": 0, "equivalent": 0, "score": 1.0}
    }
    sampled = record["scores"]["src/adaexplore"]
    survivors = [told["mutant"][1:] for told in record["survivors"]]
    assert sampled["tried"] == sampled["mutants"] == sampled["killed"] + len(survivors)
    assert ["-    return max(a, a) + a", "+    return max(a, a) - a"] in survivors
    assert "src/adaexplore/small.py:7 doubled: arithmetic" in result.out
    assert (root / "src/adaexplore/small.py").read_text() == SOURCE

    (root / "lab/mutants/equivalent.toml").write_text(EQUIVALENT)
    (root / "tests/unit/test_small.py").write_text(TESTS + MORE)
    result, record = mutate()
    assert ", 0 to try" in result.out
    assert record["scores"]["src/adaexplore"]["equivalent"] == 1
    result, record = mutate("--again")
    assert (result.code, record["survivors"]) == (0, [])
    assert record["scores"]["all targets"]["score"] == 1.0


@pytest.mark.slow
def test_a_test_that_fails_anyway_decides_nothing(mutate, root):
    with (root / "tests/unit/test_small.py").open("a") as file:
        file.write("    raise AssertionError\n")
    _, record = mutate("--sample", "0")
    assert [told["fate"] for told in record["survivors"]] == ["undecided"]
    assert record["scores"]["named"]["tried"] == 0


@pytest.mark.slow
def test_a_test_that_never_ends_is_late(mutate, root):
    (root / "src/adaexplore/small.py").write_text(f"{SOURCE}\n\nwhile False:\n    pass\n")
    endless = NAMED.replace("min(a, 3)", "while False").replace("min(a, 4)", "while True")
    (root / "lab/mutants/named.toml").write_text(endless)
    result, record = mutate("--sample", "0", "--limit", "4")
    assert (result.code, record["scores"]["named"]["late"]) == (0, 1)
