import threading

import pytest

from adaexplore.run.workers import Landed, Workers, map_parallel


@pytest.fixture
def workers():
    return Workers()


def test_results_come_in_the_order_they_are_done(workers):
    first_may_end = threading.Event()
    workers.begin("first", lambda: first_may_end.wait(20.0) and "late")
    workers.begin("second", lambda: "early")
    early = workers.next()
    first_may_end.set()
    late = workers.next()
    assert [(early.key, early.result), (late.key, late.result)] == [
        ("second", "early"),
        ("first", "late"),
    ]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_is_a_result(workers, error):
    def work():
        raise error

    workers.begin("it", work)
    landed = workers.next()
    assert (landed.key, landed.result, landed.error) == ("it", None, error)


def test_a_thread_can_put_more_than_its_result(workers):
    def work():
        workers.put(Landed(None, "meanwhile"))
        return "done"

    workers.begin("it", work)
    assert [workers.next().result, workers.next().result] == ["meanwhile", "done"]


def test_each_item_is_taken_when_its_work_can_begin():
    taken = []

    def items():
        for item in range(5):
            if len(taken) == 3:  # nobody is asked for the others
                return
            taken.append(item)
            yield item

    landed = list(map_parallel(items(), lambda item: 10 * item, parallel=2))
    assert {one.key: one.result for one in landed} == {0: 0, 1: 10, 2: 20}


def test_no_more_work_than_allowed_is_under_way():
    both = threading.Barrier(2)
    landed = list(map_parallel(range(4), lambda _: both.wait(20.0), parallel=2))
    assert sorted(one.result for one in landed) == [0, 0, 1, 1]
    assert list(map_parallel([], str, parallel=2)) == []
