from adaexplore.core.text.uses import describe_defects, describe_uses
from adaexplore.core.verdict.uses import Use

USES = (
    Use("pickle", "holds"),
    Use("other batch sizes", "refuses", "larger: ValueError: 16 rows only"),
    Use("weights changed in place", "wrong", "through .data: output is off by 0.9"),
    Use("copy.deepcopy", "holds"),
    Use("gradients", "detached"),
    Use("two instances", "wrong"),
)


def test_there_is_a_line_for_each_use_that_does_not_hold_the_worst_first():
    assert describe_uses(USES) == [
        (
            "wrong",
            "SILENTLY WRONG: weights changed in place (through .data: output is off by 0.9)",
        ),
        ("wrong", "SILENTLY WRONG: two instances"),
        ("detached", "NO GRADIENTS, without an exception: gradients"),
        (
            "refuses",
            "refuses, by an exception: other batch sizes (larger: ValueError: 16 rows only)",
        ),
        ("holds", "holds in use: pickle, copy.deepcopy"),
    ]


def test_what_was_not_tried_is_not_mentioned():
    assert describe_uses(()) == []


def test_defects_are_what_no_exception_tells():
    assert describe_defects(USES) == [line for _, line in describe_uses(USES)[:3]]
