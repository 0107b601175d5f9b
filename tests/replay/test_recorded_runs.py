"""Recorded searches gone through again at no cost.

Each is a file of `adaexplore export`; that of `computed` was answered and judged by hashes, as in
`tests/unit/test_retrace.py`, and those of `h200` by a language model and an H200, on problems of
KernelBench that are left out of them (docs/results). What policies and prompts have become since
may change where a search goes and what it asks; what was once answered has to lead to the same
candidates for ever, unless it is listed in `CHANGED` why not.
"""

from pathlib import Path

import pytest

from adaexplore.run.proposers import Plan, model_proposers
from adaexplore.store import read_run
from adaexplore_lab.replay import retrace

RUNS = sorted(Path(__file__).parent.glob("*.json.xz"))
CHANGED: dict[str, set[str]] = {
    # noise shrinks credit, which these made-up measurements have much of; a repeat earns none
    "computed.json.xz": {"selection"},
    # their first two asks were taken at once, when steps under way were counted otherwise
    **{path.name: {"selection"} for path in RUNS if path.name.endswith("_a.json.xz")},
}
"""By file, the parts in which today's search is known to differ, beside the words of prompts."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.name.removesuffix(".json.xz"), marks=pytest.mark.slow)
        if number % 3
        else pytest.param(path, id=path.name.removesuffix(".json.xz"))
        for number, path in enumerate(RUNS)
    ],
)
def test_a_recorded_search_leads_where_it_did(path):
    with read_run(path) as directory:
        store = directory.store
        run = store.run()
        proposers = model_proposers(Plan.of(run), run.config)
        retraced = retrace(store, proposers)
        assert retraced.compared["selection"] == store.ask_count()
        assert retraced.compared.get("candidate", 0) > 0
    unexpected = [
        each
        for each in retraced.differences
        if each.part != "prompt" and each.part not in CHANGED.get(path.name, set())
    ]
    assert not unexpected
