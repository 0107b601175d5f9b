from adaexplore.core.environment import Environment, Isolation
from adaexplore.run.session import notices


def test_each_missing_wall_of_the_sandbox_has_a_line():
    missing = ("candidates can [do] this: why", "and that: so")
    assert notices(Environment(isolation=Isolation(missing=missing))) == [
        "not isolated here: candidates can [do] this: why",
        "not isolated here: and that: so",
    ]


def test_a_complete_sandbox_has_no_lines():
    assert notices(Environment(isolation=Isolation(missing=()))) == []
