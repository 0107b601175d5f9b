import io

from rich.console import Console

from adaexplore.cli.progress import warn
from adaexplore.core.environment import Environment, Isolation


def test_what_is_not_isolated_is_said_in_a_line_each():
    console = Console(file=io.StringIO(), width=200)
    warn(
        console,
        Environment(isolation=Isolation(missing=("candidates can [do] this: why", "and that: so"))),
    )
    assert console.file.getvalue().splitlines() == [
        "not isolated here: candidates can [do] this: why",
        "not isolated here: and that: so",
    ]


def test_where_everything_is_nothing_is_said():
    console = Console(file=io.StringIO())
    warn(console, Environment(isolation=Isolation(missing=())))
    assert console.file.getvalue() == ""
