"""Splits of problems, with the real check of overlaps."""

import pytest
from services import PROBLEM

from adaexplore.core.errors import BadInputError
from adaexplore.problems.overlap.confined import STRUCTURE_PRELOAD
from adaexplore.sandbox.process import ForkServer
from adaexplore.serve.trainers.splits import builtin_splits, read_splits
from shared_fixtures import BorrowedServer

SCAN = PROBLEM.replace("torch.relu(x) + 1", "torch.tanh(x).cumsum(0)")
GATE = PROBLEM.replace("torch.relu(x) + 1", "torch.tanh(x) * x.amax(0)")
BENCHMARK = PROBLEM.replace("torch.relu(x) + 1", "torch.softmax(x, dim=1)")


@pytest.fixture(scope="module")
def tracing():
    """One fork server for all checks."""
    server = ForkServer.start(STRUCTURE_PRELOAD)
    yield BorrowedServer(server)
    server.close()


@pytest.fixture(autouse=True)
def _borrowed(tracing, monkeypatch):
    monkeypatch.setattr(ForkServer, "start", staticmethod(lambda _: tracing))


@pytest.fixture
def folder(tmp_path):
    def folder(name, **sources):
        (tmp_path / name).mkdir()
        for stem, source in sources.items():
            (tmp_path / name / f"{stem}.py").write_text(source)
        return tmp_path / name

    return folder


def test_no_problem_of_a_benchmark_or_held_out_is_trained_on(folder):
    held_out = folder("held", scan=SCAN.replace("64, 64", "8, 9"), softmax=BENCHMARK)
    train = folder("mine", gate=GATE, scan=SCAN, softmax=BENCHMARK, broken="class Model: ...")
    splits, lines = read_splits([f"train={train}", f"eval={held_out}"])
    assert [(s.name, s.type, [p.name for p in s.problems]) for s in splits] == [
        ("train", "train", ["gate"]),
        ("eval", "validation", ["scan", "softmax"]),
    ]
    assert lines == [
        "split train: left out: 2 problems, 1 with a benchmark's structure, "
        "1 that cannot be compared with benchmarks; left out: 1 that are held out"
    ]


def test_a_split_under_any_other_name_is_trained_on(folder):
    with pytest.raises(BadInputError, match="--split rl: no problem is left; left out: 1 problems"):
        read_splits([f"rl={folder('rl', softmax=BENCHMARK)}"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("train", "write NAME=FOLDER"),
        ("a b=x", "write NAME=FOLDER"),
        ("train=nowhere", "no Python files with problems in nowhere"),
    ],
)
def test_a_wrong_split_is_one_clear_line(text, said):
    with pytest.raises(BadInputError, match=said):
        read_splits([text])


def test_two_splits_of_one_name_are_refused(folder):
    place = folder("x", gate=GATE)
    with pytest.raises(BadInputError, match="two have the same name"):
        read_splits([f"train={place}", f"train={place}"])


def test_the_built_in_problems_may_be_trained_on(tmp_path):
    given = []
    for split in builtin_splits():
        (tmp_path / split.name).mkdir()
        for problem in split.problems:
            (tmp_path / split.name / f"{problem.name}.py").write_text(problem.source)
        given.append(f"{split.name}={tmp_path / split.name}")
    splits, lines = read_splits(given)
    assert [len(split.problems) for split in splits] == [8, 4]
    assert lines == []
