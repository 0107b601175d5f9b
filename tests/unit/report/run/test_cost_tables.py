from __future__ import annotations

import io

from hand_made import call, node, passed
from rich.console import Console

from adaexplore.core.protocols.client import Usage
from adaexplore.report.run.cost_tables import cost_tables
from adaexplore.report.run.costs import Costs, summarize_costs


def printed(costs, width=100):
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(cost_tables(costs))
    return [line.split() for line in console.file.getvalue().splitlines() if line.strip()]


def test_no_calls_give_one_line():
    assert printed(Costs()) == [["no", "model", "calls"]]


def test_models_forms_and_sections_have_a_line_each():
    settings = {"form": "large", "prompt_tokens": {"problem": 1500, "rules": 500}}
    calls = [call(1, "some:[red]model", 0.5), call(2, "other", usage=Usage())]
    calls.append(call(3, "manual", usage=Usage()))
    nodes = [node(1, passed(2.0), settings=settings)]

    lines = printed(summarize_costs(nodes, calls, {1: tuple(calls[:1])}, [0.5], len))

    for line in (
        "some:[red]model 1 100 tok 40 tok 20 tok 0.5000 USD 2 s",
        "other 1 7 tok 0 tok 5 tok unknown price 2 s",
        "large 1 1 120 tok 120 tok 1.65×",
        "manual 1 7 tok 0 tok 5 tok - 2 s",
        "(no step) 0 0 24 tok 0 tok 1.000×",
        "problem 1 1.50 ktok 75 %",
        "total: 3 calls, about 114 tok in, about 30 tok out, 0.5000 USD and 1 of unknown price, "
        "6 s waiting",
        "calls without a count: 2; their tokens are estimated",
    ):
        assert line.split() in lines
