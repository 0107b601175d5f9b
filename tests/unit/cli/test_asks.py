"""Runs answered by hand: prompts and replies as files."""

import shutil

import pytest
from test_search_commands import Renaming

from adaexplore.core.errors import BadInputError
from adaexplore.run.asks.agents import AgentRuns
from adaexplore.run.asks.ask_files import waiting_prompts
from adaexplore.run.session import Session
from adaexplore.store import read_run

RIGHT = """One pass.

```python
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(9):
            out = x.clamp(min=0) + 1
        return out
```
"""
WRONG = RIGHT.replace("+ 1", "+ 2")
SETTINGS = ("--set", "p_strategy=0", "--set", "p_contrast=0", "--set", "reviser=false")


@pytest.fixture
def new_run(adaexplore, problem, tmp_path):
    def new_run(*settings):
        path = tmp_path / "run"
        words = ("--proposer", "manual", "--device", "cpu", "--run", path, "--steps", 3)
        result = adaexplore("explore", problem, *words, *SETTINGS, *settings)
        assert result.code == 0, result
        return path

    return new_run


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Where a run lies that was begun once; the first test that needs it makes it."""
    return tmp_path_factory.mktemp("begun") / "run"


@pytest.fixture
def run(new_run, begun, tmp_path):
    """A copy of a run that was begun and waits for replies."""
    if not begun.exists():
        shutil.copytree(new_run(), begun)
    else:
        shutil.copytree(begun, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def asks(tmp_path):
    return tmp_path / "asks"


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def test_from_prompt_to_step(adaexplore, run, asks):
    assert adaexplore("ask", run, "-n", 2, "-o", asks).code == 0
    assert names(asks) == ["1.1.md", "2.1.md"]
    prompt = (asks / "1.1.md").read_text()
    assert "return torch.relu(x) + 1" in prompt
    assert "eager" in prompt

    (asks / "2.1.reply.md").write_text(RIGHT)
    told = adaexplore("tell", run, asks)
    assert told.code == 0
    assert "2.1.reply.md: taken; a candidate of 9 lines is queued" in told.out

    done = adaexplore("resume", run)
    assert done.code == 0, done
    assert "step   1/3" in done.out
    assert (run / "best.py").exists()
    assert (run / "report.html").exists()
    assert "nothing waits" in adaexplore("resume", run).out

    (asks / "1.1.reply.md").write_text(WRONG)
    again = adaexplore("tell", run, asks)
    assert again.code == 0
    assert "2.1.reply.md: ask 2" not in again.out
    adaexplore("resume", run)
    with read_run(run) as directory:
        nodes = directory.store.nodes()
    assert [node.evaluation.status for node in nodes] == ["passed", "wrong_output"]
    assert {node.proposal.origin for node in nodes} == {"manual"}


@pytest.mark.slow
def test_a_training_step_is_kept_in_the_run_and_told_in_its_prompts(adaexplore, tmp_path):
    path, asks, problem = tmp_path / "run", tmp_path / "asks", tmp_path / "gelu.py"
    problem.write_text(
        "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
        "    def forward(self, x):\n        return nn.functional.gelu(x)\n\n\n"
        "def get_inputs():\n    return [torch.randn(64, 64)]\n"
    )
    words = ("--proposer", "manual", "--device", "cpu", "--with-backward", "--run", path)
    assert adaexplore("explore", problem, *words, *SETTINGS).code == 0
    adaexplore("ask", path, "-o", asks)
    prompt = (asks / "1.1.md").read_text()
    assert "A call is a training step" in prompt
    assert 'output.input_grads["x"]: float32 [64, 64]' in prompt
    with read_run(path) as directory:
        run = directory.store.run()
    assert run.problem.checks.backward
    assert run.config.with_backward


@pytest.mark.slow
def test_what_waits_is_evaluated_side_by_side(adaexplore, run, asks):
    adaexplore("ask", run, "-n", 3, "-o", asks)
    for number, text in enumerate((RIGHT, WRONG, RIGHT), 1):
        (asks / f"{number}.1.reply.md").write_text(text)
    adaexplore("tell", run, asks)
    done = adaexplore("resume", run, "--parallel", 3)
    assert done.code == 0, done
    with read_run(run) as directory:
        nodes = directory.store.nodes()
    assert sorted(node.evaluation.status for node in nodes) == ["passed", "passed", "wrong_output"]
    assert [node.reused for node in nodes].count(True) == 1


@pytest.mark.slow
def test_the_compiler_makes_the_first_steps_if_asked_to(
    adaexplore, problem, asks, tmp_path, monkeypatch
):
    monkeypatch.setattr(Session, "compiler", lambda *_: Renaming())
    path = tmp_path / "run"
    words = [
        "explore",
        problem,
        "--proposer",
        "manual",
        "--device",
        "cpu",
        "--run",
        path,
        "--set",
        "compiler_seeds=1",
    ]
    started = adaexplore(*words, *SETTINGS, "--set", "policy=uct", "--set", "p_large=0")
    assert started.code == 0, started
    assert "step   1/20" in started.out
    assert (path / "best.py").exists()
    adaexplore("ask", path, "-o", asks)
    assert names(asks) == ["2.1.md"]
    assert "out = torch.relu(x) + 1" in (asks / "2.1.md").read_text()


def test_a_seed_that_is_stopped_leaves_a_run_to_ask(
    adaexplore, problem, asks, tmp_path, monkeypatch
):
    monkeypatch.setattr(Session, "compiler", lambda *_: Renaming(interrupt_at=1))
    path = tmp_path / "run"
    words = [
        "explore",
        problem,
        "--proposer",
        "manual",
        "--device",
        "cpu",
        "--run",
        path,
        "--set",
        "compiler_seeds=2",
    ]
    assert adaexplore(*words, *SETTINGS).code == 130
    assert adaexplore("ask", path, "-o", asks).code == 0
    assert names(asks) == ["2.1.md"]


def test_seeds_that_the_compiler_cannot_write(adaexplore, problem):
    words = [
        "explore",
        problem,
        "--proposer",
        "manual",
        "--target",
        "sm_90",
        "--set",
        "compiler_seeds=1",
    ]
    assert "TorchInductor writes Triton only where there is a GPU" in adaexplore(*words).complaint


def test_prompts_cannot_be_written_into_a_file(adaexplore, run, problem):
    line = adaexplore("ask", run, "-o", problem).complaint
    assert "cannot write prompts there: File exists" in line


def test_an_answered_run_is_exported(adaexplore, run, asks):
    adaexplore("ask", run, "-o", asks)
    (asks / "1.1.reply.md").write_text(RIGHT)
    adaexplore("tell", run, asks)
    file = run.with_name("one.json.xz")
    assert adaexplore("export", run, "-o", file).out.strip() == str(file)
    assert adaexplore("show", file).code == 0
    assert "has to end in .json.xz" in adaexplore("export", run, "-o", run / "x.zip").complaint


def test_a_reply_that_cannot_be_used_brings_a_follow_up(adaexplore, run, asks):
    adaexplore("ask", run, "-o", asks)
    (asks / "1.1.reply.md").write_text("I do not know.")
    told = adaexplore("tell", run, asks)
    assert (told.code, "follow-up" in told.out) == (0, True)
    assert names(asks) == ["1.1.md", "1.1.reply.md", "1.2.md"]
    assert "I do not know." in (asks / "1.2.md").read_text()
    (asks / "1.2.reply.md").write_text(RIGHT)
    assert "is queued" in adaexplore("tell", run, asks / "1.2.reply.md").out


def test_prompts_that_were_lost_are_written_again(adaexplore, run, asks, tmp_path):
    adaexplore("ask", run, "-n", 2, "-o", asks)
    adaexplore("ask", run, "-n", 0, "-o", tmp_path / "more")
    assert names(tmp_path / "more") == ["1.1.md", "2.1.md"]


def test_what_is_told_twice_says_so_and_the_rest_is_taken(adaexplore, run, asks):
    adaexplore("ask", run, "-n", 2, "-o", asks)
    (asks / "1.1.reply.md").write_text(RIGHT)
    adaexplore("tell", run, asks)
    (asks / "1.1.reply.md").write_text(WRONG)
    (asks / "2.1.reply.md").write_text(RIGHT)
    told = adaexplore("tell", run, asks)
    assert told.code == 2
    assert "1.1.reply.md: ask 1, turn 1 has been answered already" in told.out
    assert "2.1.reply.md: taken" in told.out


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("9.1.reply.md", "x", "there is no ask 9"),
        ("notes.reply.md", "x", "name it after its prompt"),
        ("1.1-reply.md", "x", "name it after its prompt"),
        ("reply.txt", "x", "name it after its prompt"),
        ("1.5.reply.md", "x", "turn 5 has been answered"),
        ("1.1.reply.md", "x" * (5 << 20), "larger than 4 MiB"),
        ("1.1.reply.md", " \n", "is empty; write the reply into it, or delete it"),
        ("1.1.reply.md", b"\0\xff\xfe", "not UTF-8 text; save the reply as UTF-8"),
        ("9999999999.1.reply.md", "x", "name it after its prompt"),
        ("1.99999999999999999999.reply.md", "x", "name it after its prompt"),
    ],
)
def test_files_that_are_no_replies(adaexplore, run, asks, name, content, words):
    adaexplore("ask", run, "-n", 2, "-o", asks)
    (asks / name).write_bytes(content.encode() if isinstance(content, str) else content)
    (asks / "2.1.reply.md").write_bytes(b"\xef\xbb\xbf" + RIGHT.encode())
    told = adaexplore("tell", run, asks)
    assert told.code == 2
    assert f"{name}: " in told.out
    assert words in told.out
    assert "2.1.reply.md: taken; a candidate" in told.out
    (asks / name).unlink()
    (asks / "1.1.reply.md").write_text(RIGHT)
    assert "1.1.reply.md: taken; a candidate" in adaexplore("tell", run, asks).out


def test_an_editors_own_files_are_no_replies(adaexplore, run, asks):
    adaexplore("ask", run, "-n", 1, "-o", asks)
    for name in (".1.1.reply.md.swp", "1.1.reply.md~", "1.1.reply.md"):
        (asks / name).write_text(RIGHT)
    told = adaexplore("tell", run, asks)
    assert (told.code, told.out.count("reply.md")) == (0, 1)


def test_what_is_named_like_a_reply_and_is_no_file(adaexplore, run, asks):
    adaexplore("ask", run, "-n", 3, "-o", asks)
    (asks / "1.1.reply.md").mkdir()
    (asks / "2.1.reply.md").symlink_to("gone")
    (asks / "3.1.reply.md").write_text(RIGHT)
    told = adaexplore("tell", run, asks)
    assert told.code == 2
    assert told.out.count("is no regular file; write the reply into a file of this name") == 2
    assert "3.1.reply.md: taken" in told.out


def test_prompts_on_a_full_disk_can_be_written_later(adaexplore, run, asks, fill_disk, monkeypatch):
    fill_disk()
    line = adaexplore("ask", run, "-o", asks).complaint
    assert line.endswith(
        f"cannot write {asks / '1.1.md'}: No space left on device; free some space and write the "
        "open prompts again with -n 0"
    )
    assert names(asks) == []
    monkeypatch.undo()
    assert adaexplore("ask", run, "-n", 0, "-o", asks).code == 0
    assert names(asks) == ["1.1.md"]


def test_a_folder_without_replies(adaexplore, run, asks):
    adaexplore("ask", run, "-o", asks)
    assert "holds no replies" in adaexplore("tell", run, asks).complaint


def test_a_place_that_is_not_there(adaexplore, run, asks):
    assert "does not exist" in adaexplore("tell", run, asks).complaint


def test_structures_are_asked_for_before_the_prompts_that_get_them(adaexplore, new_run, asks):
    run = new_run("--set", "outlines=true")
    asked = adaexplore("ask", run, "-n", 3, "-o", asks)
    assert "1.1.md: large step, outlines for this and 2 more prompts;" in asked.out
    assert names(asks) == ["1.1.md"]
    with read_run(run) as directory:
        assert [waiting.ask_id for waiting in waiting_prompts(directory)] == [1]
    agents = AgentRuns()
    assert agents.next_prompt(run)["kind"] == "outlines"
    assert agents.next_prompt(run)["waiting"] == [1]
    with pytest.raises(BadInputError, match="ask 2 has no prompt yet"):
        agents.next_prompt(run, 2)
    agents.close()

    (asks / "2.1.reply.md").write_text(RIGHT)
    early = adaexplore("tell", run, asks)
    assert early.code == 2
    assert "2.1.reply.md: ask 2 has no prompt yet" in early.out
    (asks / "2.1.reply.md").unlink()

    (asks / "1.1.reply.md").write_text("1. one loop: fuse.\n2. two loops: split.")
    told = " ".join(adaexplore("tell", run, asks).out.split())
    assert "a follow-up, large.outline: 1.2.md; and for other steps: 2.1.md, 3.1.md" in told
    assert "# Your structure\none loop: fuse." in (asks / "1.2.md").read_text()
    assert "# Your structure\ntwo loops: split." in (asks / "2.1.md").read_text()
    assert "- one loop\n- two loops\n" in (asks / "3.1.md").read_text()
    (asks / "2.1.reply.md").write_text(RIGHT)
    assert "a candidate of 9 lines is queued" in adaexplore("tell", run, asks).out
    adaexplore("resume", run)
    with read_run(run) as directory:
        [node] = directory.store.nodes()
    assert node.proposal.note == "outline: two loops; One pass."
    assert "1.2.md" in adaexplore("ask", run, "-n", 0, "-o", asks).out


def test_fewer_steps_than_are_made_and_asked_for_are_refused_and_change_nothing(
    adaexplore, run, asks
):
    assert adaexplore("ask", run, "-n", 2, "-o", asks).code == 0
    refused = adaexplore("ask", run, "--steps", 1, "-o", asks)
    assert refused.code == 2
    assert "--steps 1: 0 steps are made and 2 are asked for; give at least 2" in refused.err
    with read_run(run) as directory:
        assert directory.store.run().steps == 3
