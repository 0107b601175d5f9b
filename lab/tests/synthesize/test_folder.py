import json

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore_lab.synthesize.folder import INDEX, TaskFolder
from adaexplore_lab.synthesize.grammar import grow
from adaexplore_lab.synthesize.validate import Validated


def test_tasks_come_back(tmp_path):
    folder = TaskFolder(tmp_path / "tasks")
    tasks = [grow(1), grow(2)]
    for number, task in enumerate(tasks):
        folder.add(Validated(task, structure=f"s{number}", labels={"collapsible": "so"}))
    again = TaskFolder(tmp_path / "tasks")
    found = again.tasks()
    assert [(t.name, t.source, t.ops, t.seed) for t in found] == [
        (t.name, t.source, t.ops, t.seed) for t in tasks
    ]
    assert again.known == {"s0": tasks[0].name, "s1": tasks[1].name}
    entry = json.loads((tmp_path / "tasks" / INDEX).read_text())["tasks"][0]
    assert entry["difficulty"] == tasks[0].difficulty
    assert entry["labels"] == {"collapsible": "so"}
    assert "source" not in entry


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 2, "tasks": []}', '{"format": 1, "tasks": [{"name": 3}]}']
)
def test_an_index_that_is_none_is_bad_input(tmp_path, text):
    (tmp_path / INDEX).write_text(text)
    with pytest.raises(BadInputError, match="no index of tasks"):
        TaskFolder(tmp_path)


def test_a_file_in_the_place_of_the_folder_is_bad_input(tmp_path):
    (tmp_path / "tasks").write_text("")
    with pytest.raises(BadInputError, match="cannot be used for tasks"):
        TaskFolder(tmp_path / "tasks")


def test_a_task_whose_file_is_gone_is_bad_input(tmp_path):
    folder = TaskFolder(tmp_path)
    folder.add(Validated(grow(1), structure="s"))
    (tmp_path / f"{grow(1).name}.py").unlink()
    with pytest.raises(BadInputError, match="cannot be read"):
        folder.tasks()
