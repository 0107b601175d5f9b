"""The Gluon experiment: its tasks, the exchange of files, and what is counted."""

from collections import Counter

import pytest
from gluon_lift import (
    HARD,
    block_differences,
    compared,
    demands_of,
    hand_out,
    sign_flip_p,
    take_in,
)
from gluon_tasks import HELD_OUT, LEARN, drawn

from adaexplore.languages import DIALECTS
from adaexplore.memory import technique_demands
from adaexplore_lab.lift.summary import TaskTries


class TestTasks:
    def test_are_the_same_at_every_draw_and_none_comes_twice(self):
        sources = drawn()
        assert drawn() == sources
        bodies = [
            source[source.index("class Model") : source.index("def get_inputs")]
            for source in sources
        ]
        assert len(set(map(tuple, bodies))) == len(sources) == LEARN + HELD_OUT

    @pytest.mark.parametrize("part", [slice(0, LEARN), slice(LEARN, None)])
    def test_techniques_are_demanded_equally_often(self, part):
        often = Counter(technique_demands(drawn()[part], language="gluon", on_gpu=False))
        assert max(often.values()) - min(often.values()) <= 1
        assert len(often) == 21

    def test_held_out_ones_demand_two_techniques_the_second_one_that_is_hard(self):
        texts = {f"{one.text}.": one.name for one in DIALECTS["gluon"].techniques}
        pairs = [demand.split(" And this: ") for demand in demands_of(drawn()[LEARN:])]
        assert all(len(pair) == 2 and pair[0] != pair[1] for pair in pairs)
        often = Counter(texts[second] for _, second in pairs)
        assert set(often) == set(HARD)
        assert max(often.values()) - min(often.values()) <= 1


class TestFiles:
    def test_replies_come_back_to_their_prompts(self, tmp_path):
        asks, flat = tmp_path / "asks", tmp_path / "flat"
        names = ("runs/007/1.1.md", "runs/007/2.1.md", "rules/ab12.1.md")
        for name in names:
            (asks / name).parent.mkdir(parents=True, exist_ok=True)
            (asks / name).write_text(f"Prompt {name}")
        (asks / "runs/007/1.1.reply.md").write_text("answered before")

        hand_out(asks, flat)
        flat_names = sorted(path.name for path in flat.iterdir())
        assert flat_names == ["007-2.1.prompt.md", "rule-ab12.1.prompt.md"]
        (flat / "007.reply.md").write_text("too late")
        (flat / "rule-ab12.1.reply.md").write_text("the rule")
        take_in(flat, asks)
        assert (asks / "runs/007/1.1.reply.md").read_text() == "answered before"
        assert (asks / "rules/ab12.1.reply.md").read_text() == "the rule"
        assert not (asks / "runs/007/2.1.reply.md").exists()


TRIES = [
    *(TaskTries(f"{n}", "none", ("compile_error",)) for n in range(3)),
    TaskTries("3", "none", ("not_run",)),
    *(TaskTries(f"{n}", "learned", ("not_run",)) for n in range(4)),
]


def test_what_compiles_is_no_failure():
    (none, learned), [found] = compared(TRIES)
    assert (none.right, dict(none.failures)) == (1, {"compile_error": 3})
    assert (learned.right, dict(learned.failures)) == (4, {})
    assert (found.better, found.worse, found.p_value) == (3, 0, 0.25)


def test_what_ignores_its_technique_fails_the_strict_count():
    (none, learned), [found] = compared(TRIES, {("0", "learned"), ("0", "none")})
    assert dict(none.failures) == {"compile_error": 3}
    assert dict(learned.failures) == {"ignores its technique": 1}
    assert (found.better, found.worse) == (2, 0)


def tries_at(task, none, learned):
    return [
        TaskTries(task, arm, outcomes) for arm, outcomes in (("none", none), ("learned", learned))
    ]


def test_a_block_has_every_so_manieth_task_and_counts_only_if_it_is_complete():
    right, wrong, lacking = ("not_run",), ("compile_error",), ()
    attempted = [
        *tries_at("1", wrong, right),
        *tries_at("2", right, wrong),
        *tries_at("3", right, right),
        *tries_at("4", wrong, right),
        *tries_at("5", wrong, right),
        *tries_at("6", right, lacking),
    ]
    assert block_differences(attempted, 3) == [2, 0]  # tasks 1 and 4, 2 and 5; 3 and 6 lack one


@pytest.mark.parametrize(
    ("differences", "p"),
    [([1] * 10, 2 / 1024), ([0, 0], 1.0), ([3, 1, -1], 0.75), ([2, 1, 1], 0.25), ([], 1.0)],
)
def test_the_p_value_of_a_sum_is_over_all_signs(differences, p):
    assert sign_flip_p(differences) == p
