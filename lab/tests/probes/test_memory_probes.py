"""The probes as texts; whether they hold is what `adapt --probe` finds out."""

import ast
import re

import pytest

from adaexplore_lab.probes import PROBES


def test_every_fact_has_one_name_and_one_statement():
    for values in ([p.name for p in PROBES], [p.statement for p in PROBES]):
        assert len(values) == len(set(values))


@pytest.mark.parametrize("probe", PROBES, ids=lambda p: p.name)
def test_a_probe_is_three_programs_of_which_two_differ(probe):
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,79}", probe.name)
    assert probe.topics
    assert probe.witness != probe.remedy
    for source, name in (
        (probe.reference, "Model"),
        (probe.witness, "ModelNew"),
        (probe.remedy, "ModelNew"),
    ):
        defined = {n.name for n in ast.parse(source).body if isinstance(n, ast.ClassDef)}
        assert name in defined
    assert len(probe.statement) <= 220
    assert "\n" not in probe.statement
