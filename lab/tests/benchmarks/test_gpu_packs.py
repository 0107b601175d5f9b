"""The recipes for a GPU machine: a seed fixes a draw, and run.sh and its page name all it does."""

import re
import subprocess
from pathlib import Path

import prepare

GPU = Path(prepare.__file__).parent
TASKS = [f"task{i}" for i in range(60)]
ANSWERED = {task: ["a", "b", "c", "d", "e", "f"] for task in TASKS}


def test_fifty_tasks_and_four_files_each_whatever_their_order():
    found = prepare.drawn(TASKS, ANSWERED)
    again = prepare.drawn(TASKS[::-1], {task: files[::-1] for task, files in ANSWERED.items()})
    assert found == again
    assert len(set(found)) == 200
    assert len({task for task, _ in found}) == 50
    assert prepare.drawn(TASKS, ANSWERED, seed=1) != found


def test_a_task_with_few_answers_has_all_of_them():
    found = prepare.drawn(["one", "none"], {"one": ["a", "b"]})
    assert sorted(found) == [("one", "a"), ("one", "b")]


def test_run_names_what_it_can_do(tmp_path):
    variables = {
        "WORK": str(tmp_path / "work"),
        "OUT": str(tmp_path / "out"),
        "PATH": "/usr/bin:/bin",
    }
    done = subprocess.run(
        ["bash", GPU / "run.sh", "nonsense"], env=variables, capture_output=True, text=True
    )
    assert done.returncode == 2
    cases = re.findall(r"^([a-z][\w| -]*)\)", (GPU / "run.sh").read_text(), re.MULTILINE)
    names = {name.strip() for case in cases for name in case.split("|")}
    assert names >= {"tests", "record", "searches"}
    assert all(re.search(rf"\b{name}\b", done.stderr) for name in names)
    readme = (GPU / "README.md").read_text()
    assert all(f"`{name}`" in readme for name in names)
