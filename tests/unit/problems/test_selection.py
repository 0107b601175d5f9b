"""The choice of tasks: categories, lists of problems, samples."""

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.benchmark import BenchmarkTask, Exclusion
from adaexplore.problems.benchmarks.selection import TaskSelection


def task(key, category, name):
    return BenchmarkTask(key, category, name, "")


TASKS = [
    *(task(f"1/{i}", "level 1", f"{i}_Gelu.py") for i in range(1, 13)),
    *(task(f"2/{i}", "level 2", f"{i}_Linear.py") for i in range(1, 4)),
    task("relu", "activation", "relu.py"),
    task("010_add", "npu", "010_add.py"),
    task("kernelbench/level_1/task_7/forward-1", "kernelbench level 1", "task_7_forward_1.py"),
]
EXCLUDED = [Exclusion("4/1", "level 4", "no package"), Exclusion("1/13", "level 1", "no file")]


def chosen(*lists, **options):
    tasks, excluded = TaskSelection(lists=lists, **options).of(TASKS, EXCLUDED)
    return [task.key for task in tasks], [one.key for one in excluded]


def test_all_without_anything_given():
    assert chosen() == ([task.key for task in TASKS], ["4/1", "1/13"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2 1-3", ["2/1", "2/2", "2/3"]),
        ("2 1-2,3", ["2/1", "2/2", "2/3"]),
        ("level 1 2-3, 11", ["1/2", "1/3", "1/11"]),
        ("1-2", ["1/1", "1/2", "2/1", "2/2", "kernelbench/level_1/task_7/forward-1"][:4]),
        ("activation re*", ["relu"]),
        ("npu 10", ["010_add"]),
        ("3_Linear", ["2/3"]),
        ("3_Linear.py", ["2/3"]),
        ("*/task_7/*", ["kernelbench/level_1/task_7/forward-1"]),
        ("2/3", ["2/3"]),
    ],
)
def test_a_list_has_a_category_numbers_ranges_and_patterns(line, expected):
    assert chosen(line)[0] == expected


def test_lists_add_up_within_the_categories_and_keep_the_order():
    assert chosen("2 3", "1 2") == (["1/2", "2/3"], [])
    assert chosen("1 12-13", categories=("level 1",)) == (["1/12"], ["1/13"])


def test_a_file_has_a_list_in_each_line(tmp_path):
    file = tmp_path / "lists.txt"
    file.write_text("# mine\n2 3\n\n1 2\n")
    assert chosen(str(file))[0] == ["1/2", "2/3"]


def test_a_sample_is_drawn_by_the_seed_and_stays_in_order():
    one, same, other = (chosen(sample=5, seed=seed)[0] for seed in (1, 1, 2))
    assert one == same != other
    assert len(one) == 5
    assert one == [task.key for task in TASKS if task.key in one]
    assert chosen("2 1-3", sample=9)[0] == ["2/1", "2/2", "2/3"]


@pytest.mark.parametrize(
    ("lists", "categories", "complaint"),
    [
        (["2 4"], [], "--problems '2 4': 4 is no problem in 2"),
        (["gelu"], [], "gelu is no problem"),
        (["3 1"], [], "--category 3: no such category; known: level 1"),
        (["2 1"], ["level 1"], "--category 2: no such category"),
        ([], ["activations"], "--category activations: no such category; known: activation"),
        ([], ["4"], "4/1, like all that is chosen: no package"),
        (["1 13"], [], "1/13, like all that is chosen: no file"),
    ],
)
def test_what_names_nothing_is_refused_in_a_line(lists, categories, complaint):
    with pytest.raises(BadInputError) as caught:
        chosen(*lists, categories=tuple(categories))
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
