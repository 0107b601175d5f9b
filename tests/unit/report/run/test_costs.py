from __future__ import annotations

import math

import pytest
from hand_made import call, failed, node, passed
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.protocols.client import Usage
from adaexplore.report.run.costs import Costs, summarize_costs


def costs_of(nodes=(), calls=(), exchanges=None, gains=None) -> Costs:
    return summarize_costs(nodes, calls, exchanges or {}, gains or [0.0] * len(nodes), len)


def model_node(node_id, evaluation, form, **sections):
    return node(node_id, evaluation, settings={"form": form, "prompt_tokens": sections})


def test_a_run_without_calls_costs_nothing():
    assert costs_of([node(1, passed(1.0), settings={})]).total.calls == 0
    assert costs_of() == Costs()


def test_calls_add_up_by_model_most_tokens_first():
    calls = [call(1, "a:cheap", 0.25), call(2, "b:dear", 0.5), call(2, "b:dear")]

    costs = costs_of(calls=calls)

    assert [(m.model, m.spent.calls, m.spent.cost_usd, m.spent.unpriced) for m in costs.models] == [
        ("b:dear", 2, 0.5, 1),
        ("a:cheap", 1, 0.25, 0),
    ]
    total = costs.total
    assert (total.input_tokens, total.output_tokens, total.cached_tokens) == (300, 60, 120)
    assert (total.cost_usd, total.waited_s, total.estimated) == (0.75, 6.0, 0)


def test_uncounted_calls_are_estimated_except_refused_ones():
    calls = [call(1, usage=Usage()), call(1, usage=Usage(), text="", finish="too_long"), call(1)]

    total = costs_of(calls=calls).total

    assert (total.input_tokens, total.output_tokens) == (len("Faster!") + 100, len("Done.") + 20)
    assert total.estimated == 1


def test_forms_have_steps_tokens_and_gain():
    nodes = [
        model_node(1, passed(1.5), "large"),
        model_node(2, failed(), "patch"),
        model_node(3, passed(3.0), "patch"),
        node(4, passed(1.0), settings={"family": "fold"}),
    ]
    talks = {1: (call(1),), 2: (call(2), call(2)), 3: (call(3), call(3), call(3))}
    calls = [*(each for talk in talks.values() for each in talk), call(9)]
    gains = [math.log(1.5), 0.0, math.log(2.0), 0.0]

    costs = costs_of(nodes, calls, talks, gains)

    assert [
        (f.form, f.steps, f.passed, f.tokens_per_step, pytest.approx(f.gain)) for f in costs.forms
    ] == [
        ("patch", 2, 1, 300.0, 2.0),
        ("large", 1, 1, 120.0, 1.5),
        ("", 0, 0, 0.0, 1.0),
        ("compiler", 1, 1, 0.0, 1.0),
    ]


def test_section_costs_come_from_the_steps():
    nodes = [
        model_node(1, passed(1.0), "large", problem=100, pool=0),
        model_node(2, passed(1.0), "large", problem=200, window=100),
    ]

    sections = costs_of(nodes).sections

    assert [(s.section, s.steps, s.tokens_per_step, s.share) for s in sections] == [
        ("problem", 2, 150.0, 0.75),
        ("window", 1, 100.0, 0.25),
    ]


made = st.lists(st.tuples(st.integers(1, 4), st.sampled_from("abc"), st.booleans()), max_size=20)


@given(made, st.integers(0, 4))
def test_models_and_forms_add_up_to_the_total(made, recorded):
    calls = [
        call(ask_id, model, 0.5 if priced else None, usage=Usage(ask_id, 1))
        for ask_id, model, priced in made
    ]
    nodes = [model_node(i, passed(1.0), f"form-{i % 2}") for i in range(1, recorded + 1)]
    talks = {
        n.id: tuple(each for each in calls if each.ask_id == n.id)
        for n in nodes
        if any(each.ask_id == n.id for each in calls)
    }

    costs = costs_of(nodes, calls, talks)

    for part in (costs.models, costs.forms):
        assert sum(each.spent.calls for each in part) == costs.total.calls == len(calls)
        assert sum(each.spent.tokens for each in part) == costs.total.tokens
        assert sum(each.spent.unpriced for each in part) == costs.total.unpriced
