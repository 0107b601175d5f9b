from __future__ import annotations

from dataclasses import replace

from hand_made import ask, call, node, passed

from adaexplore.core.client import Message, Prompt
from adaexplore.report.run.exchanges import conversations, new_messages


def test_calls_find_the_step_that_began_with_their_ask():
    nodes = [
        node(1, passed(1.0), started_at=5.0),
        node(2, passed(1.0), parent_id=1, started_at=6.0),
        node(3, passed(1.0), started_at=4.0),
    ]
    asks = [ask(1, 4.0), ask(2, 5.0), ask(3, 6.0, parent_id=1), ask(4, 7.0)]
    calls = [call(2), call(1), call(2, text="Again."), call(4)]

    found = conversations(nodes, asks, calls)

    assert found == {1: (calls[0], calls[2]), 3: (calls[1],)}


def test_an_ask_that_ended_without_a_step_lends_it_none():
    nodes = [node(1, passed(1.0), started_at=5.0)]
    asks = [ask(1, 5.0, state="expired"), ask(2, 5.0)]

    assert conversations(nodes, asks, [call(1)]) == {}


def test_a_turn_repeats_nothing_of_the_one_before():
    first = call(1)
    second = replace(first, prompt=first.prompt.after("Done.", "Go on."))
    other = replace(first, prompt=Prompt((Message("user", "Something else"),)))

    assert new_messages((first, second, other)) == [
        (Message("user", "Faster!"),),
        (Message("user", "Go on."),),
        (Message("user", "Something else"),),
    ]
