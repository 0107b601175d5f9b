from __future__ import annotations

from dataclasses import replace

from hand_made import call, node, passed

from adaexplore.core.protocols.client import Message, Prompt
from adaexplore.report.run.exchanges import exchanges_by_step, new_messages


def test_exchanges_belong_to_the_step_that_answers_their_ask():
    nodes = [node(1, passed(1.0), ask_id=2), node(2, passed(1.0)), node(3, passed(1.0), ask_id=1)]
    calls = [call(2), call(1), call(2, text="Again."), call(4)]

    assert exchanges_by_step(nodes, calls) == {1: (calls[0], calls[2]), 3: (calls[1],)}


def test_new_messages_repeat_nothing():
    first = call(1)
    second = replace(first, prompt=first.prompt.after("Done.", "Go on."))
    other = replace(first, prompt=Prompt((Message("user", "Something else"),)))

    assert new_messages((first, second, other)) == [
        (Message("user", "Faster!"),),
        (Message("user", "Go on."),),
        (Message("user", "Something else"),),
    ]
