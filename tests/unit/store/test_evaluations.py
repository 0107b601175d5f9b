"""The database of evaluations that runs share, in a file and on a real server."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.core.evaluation import Failed
from adaexplore.store.evaluations import SharedEvaluations

VERDICTS = [Failed("wrong_output", f"verdict {number}") for number in range(8)]


@pytest.fixture(params=["file", "server"])
def place(request, tmp_path):
    if request.param == "file":
        yield str(tmp_path / "shared.db")
        return
    url = request.getfixturevalue("postgresql").url
    yield url
    shared = SharedEvaluations(url)
    shared.forget(0.0)
    shared.close()


def test_the_first_evaluation_of_a_key_stays(place):
    shared = SharedEvaluations(place)
    assert shared.find("key") is None
    shared.add("key", VERDICTS[0], "NVIDIA H200")
    shared.add("key", VERDICTS[1], "another")
    shared.close()
    again = SharedEvaluations(place)
    found = again.find("key")
    assert (found.evaluation, found.machine) == (VERDICTS[0], "NVIDIA H200")
    assert len(again) == 1
    again.close()


def test_several_that_begin_and_write_at_once_lose_nothing(place):
    def write(number):
        shared = SharedEvaluations(place)
        for step in range(10):
            shared.add(f"{number}-{step}", VERDICTS[number], "one")
            shared.add(f"all-{step}", VERDICTS[number], "one")
        shared.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))
    shared = SharedEvaluations(place)
    assert len(shared) == 90
    assert shared.find("3-9").evaluation == VERDICTS[3]
    shared.close()


def test_old_evaluations_are_forgotten(place):
    shared = SharedEvaluations(place)
    shared.add("key", VERDICTS[0], "one")
    assert shared.forget(3600.0) == 0
    assert shared.forget(0.0) == 1
    assert len(shared) == 0
    shared.close()


@pytest.mark.parametrize(
    "wrong", ["folder/that/is/not/there.db", "postgresql://nobody@127.0.0.1:1/x"]
)
def test_a_place_that_cannot_be_used_is_one_line(tmp_path, wrong):
    place = wrong if "://" in wrong else str(tmp_path / wrong)
    with pytest.raises(BadInputError, match="--evaluation-cache") as refused:
        SharedEvaluations(place)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_no_database_is_one_line(tmp_path):
    place = tmp_path / "notes.txt"
    place.write_text("no database, but a text of some length\n" * 50)
    with pytest.raises(BadInputError, match="file is not a database"):
        SharedEvaluations(str(place))
