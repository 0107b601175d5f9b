"""Outages shared by all callers of a model."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from fake_client import FakeClient

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.client import Message, ModelOutageError, Prompt
from adaexplore.llm.outage import OutageTolerantClient

PROMPT = Prompt((Message("user", "hello"),))
DOWN = ModelOutageError("out of reach")


class Provider:
    """Is out of reach until it is told otherwise; counts who asked meanwhile."""

    model = "openai:gpt-5-mini"

    def __init__(self, together: int) -> None:
        self._first = threading.Barrier(together, timeout=20.0)
        self._began = threading.local()
        self.up = False
        self.in_vain = 0

    def ask(self, prompt):
        if not hasattr(self._began, "yes"):
            self._began.yes = True
            self._first.wait()  # all are asking when it goes down
        if self.up:
            return FakeClient("fine").ask(prompt)
        self.in_vain += 1
        raise DOWN

    def close(self):
        pass


def enduring(client, patience_s=1000.0):
    told, slept = [], []
    waiting = lambda reason, wait_s: told.append((reason, wait_s))  # noqa: E731
    return OutageTolerantClient(client, patience_s, waiting, sleep=slept.append), told, slept


def test_without_an_outage_calls_pass_through():
    client, told, _ = enduring(FakeClient("fine"))
    assert client.ask(PROMPT).text == "fine"
    assert client.model == "openai:gpt-5-mini"
    assert told == []


def test_an_outage_is_retried_at_growing_intervals():
    client, told, slept = enduring(FakeClient(*[DOWN] * 9, "fine"))
    assert client.ask(PROMPT).text == "fine"
    assert slept == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]
    assert told == [("out of reach", wait_s) for wait_s in slept]


@pytest.mark.parametrize(("patience_s", "tries"), [(0.0, 1), (5.0, 2), (16.0, 4)])
def test_the_patience_bounds_the_wait(patience_s, tries):
    fake = FakeClient(*[DOWN] * 20)
    client, _, _ = enduring(fake, patience_s)
    with pytest.raises(ModelOutageError, match="out of reach"):
        client.ask(PROMPT)
    assert len(fake.asked) == tries


def test_each_outage_has_the_whole_patience():
    client, _, slept = enduring(FakeClient(DOWN, "a", DOWN, "b"), patience_s=5.0)
    assert [client.ask(PROMPT).text for _ in range(2)] == ["a", "b"]
    assert slept == [5.0, 5.0]


def test_other_errors_are_not_retried():
    client, told, _ = enduring(FakeClient(BadInputError("no such model")))
    with pytest.raises(BadInputError):
        client.ask(PROMPT)
    assert told == []


def test_one_thread_retries_for_all():
    provider = Provider(together=5)
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        provider.up = len(slept) == 3

    client = OutageTolerantClient(provider, 1000.0, lambda *_: None, sleep=sleep)
    with ThreadPoolExecutor(5) as threads:
        replies = list(threads.map(client.ask, [PROMPT] * 5))
    assert [reply.text for reply in replies] == ["fine"] * 5
    assert slept == [5.0, 10.0, 20.0]
    assert provider.in_vain <= 5 + 2


def test_all_threads_give_up_together():
    provider = Provider(together=5)
    slept = []
    client = OutageTolerantClient(provider, 12.0, lambda *_: None, sleep=slept.append)
    with ThreadPoolExecutor(5) as threads:
        asked = [threads.submit(client.ask, PROMPT) for _ in range(5)]
        assert all(isinstance(each.exception(), ModelOutageError) for each in asked)
    assert slept == [5.0, 10.0]
