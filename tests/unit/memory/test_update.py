"""Several processes, one memory."""

import dataclasses
import multiprocessing

import pytest
from test_memory_files import RULE

from adaexplore.core.errors import BadInputError
from adaexplore.core.rule import Signature
from adaexplore.memory.files import load_memory
from adaexplore.memory.update import update

PROCESSES, EACH = 4, 6


def rule(name, symbol="", **changes):
    signature = Signature("compile_error", "AttributeError", symbol or name, "no")
    return dataclasses.replace(
        RULE, name=name, statement=f"There is no {name}.", signature=signature, **changes
    )


def add_some(path, worker, started):
    started.wait()
    for number in range(EACH):
        update(path, [rule(f"rule-{worker}-{number}")])


def test_no_rule_is_lost_where_several_update_at_once(tmp_path):
    path = tmp_path / "memory.toml"
    context = multiprocessing.get_context("fork")
    started = context.Barrier(PROCESSES)
    workers = [
        context.Process(target=add_some, args=(path, worker, started))
        for worker in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * PROCESSES
    expected = {f"rule-{w}-{n}" for w in range(PROCESSES) for n in range(EACH)}
    assert {known.name for known in load_memory(path)} == expected


def test_what_a_rule_of_the_memory_explains_is_counted_there(tmp_path):
    path = tmp_path / "memory.toml"
    update(path, [rule("no-tanh", tasks=("a",), support=1)])
    rules = update(path, [rule("tanh-missing", "no-tanh", tasks=("b",), support=3)])
    assert rules == load_memory(path)
    [known] = rules
    assert (known.name, known.tasks, known.support) == ("no-tanh", ("a", "b"), 3)


def test_a_memory_that_cannot_be_read_or_written_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "memory.toml"
    path.write_text("format = 0\n")
    with pytest.raises(BadInputError, match="no memory"):
        update(path, [rule("x")])
    assert path.read_text() == "format = 0\n"
    with pytest.raises(BadInputError, match="cannot write"):
        update(tmp_path / "nowhere" / "memory.toml", [rule("x")])
