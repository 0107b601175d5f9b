"""study, on real small problems with a proposer that needs no compiler."""

import json

import pytest
from test_search_commands import Renaming

from adaexplore.core.settings.config import Config
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.run.campaign.run import begin_order, change_campaign
from adaexplore.run.session import Session
from adaexplore.run.study.file import read_study_file
from adaexplore.store import read_run
from adaexplore.store.campaign import read_manifest

ARMS = """
device = "cpu"
confirm = false
steps = {steps}
[[problem]]
file = "problem.py"
[[arm]]
name = "tree"
policy = "uct"
[[arm]]
name = "alone"
policy = "ps"
"""
MANUAL = ("--proposer", "manual", "--language", "cpp", "--set", "p_strategy=0")


@pytest.fixture
def proposer(monkeypatch):
    proposer = Renaming()
    monkeypatch.setattr(Session, "compiler", lambda *_: proposer)
    return proposer


@pytest.fixture
def prepared(monkeypatch):
    """The seeds of the problems whose references were prepared, in order."""
    told, spawn = [], LocalEvaluator.prepare

    def prepare(self):
        if self._judge is None:
            told.append(self._problem.seed)
        return spawn(self)

    monkeypatch.setattr(LocalEvaluator, "prepare", prepare)
    return told


@pytest.fixture
def arms(file, problem):
    return lambda steps, more="": file("arms.toml", f"{more}{ARMS.format(steps=steps)}")


def steps(folder):
    counts = {}
    for path in sorted(folder.glob("*/*/run.db")):
        with read_run(path.parent) as run:
            counts[str(path.parent.relative_to(folder))] = run.store.node_count()
    return counts


def clusters(folder):
    """The Ray clusters of all searches."""
    found = set()
    for run in folder.glob("*/*/run.db"):
        with read_run(run.parent) as directory:
            found.add(directory.store.run().config.ray)
    return found


@pytest.mark.slow
def test_a_study_from_beginning_to_end(adaexplore, arms, proposer, prepared, tmp_path):
    folder, out = tmp_path / "study", tmp_path / "out.json"
    result = adaexplore("study", arms(1, "seeds = 2\n"), "--run", folder, "--json", out)
    assert result.code == 0, result
    runs = [f"{arm}/problem-seed{seed}" for arm in ("alone", "tree") for seed in (0, 1)]
    assert steps(folder) == dict.fromkeys(runs, 1)
    assert prepared == [0]  # once, for both arms and both seeds
    data = json.loads(out.read_text())
    assert [arm["settings"] for arm in data["arms"]] == [{"policy": "uct"}, {"policy": "ps"}]
    assert data["cells"] == [["problem", 0], ["problem", 1]]
    assert {row["steps"] for row in data["kinds"]} == {2}
    assert "arm over arm, all 1 problem" in result.out
    assert 'href="tree/problem-seed0/report.html"' in (folder / "index.html").read_text()
    assert (folder / "tree/problem-seed0/report.html").exists()

    assert "arm over arm" in adaexplore("show", folder).out
    page = tmp_path / "page.html"
    assert adaexplore("report", folder, "-o", page).code == 0
    assert page.read_text() == (folder / "index.html").read_text()
    compared = adaexplore("compare", folder)
    assert "alone over tree at 1 step: " in compared.out

    change_campaign(folder, Config(steps=2, ray="127.0.0.1:1"))  # joined, it needs a cluster
    assert clusters(folder) == {"127.0.0.1:1"}
    more = adaexplore("resume", folder, "--ray", "")
    assert more.code == 0, more
    assert clusters(folder) == {""}
    assert steps(folder) == dict.fromkeys(runs, 2)
    refused = adaexplore("resume", folder, "--allocation", "headroom")
    assert refused.code == 2
    assert "may change --steps, --budget, --parallel" in refused.err


def test_an_arm_with_a_judge_that_no_cluster_has_is_refused_before_a_run_begins(
    adaexplore, file, problem, tmp_path
):
    arms = file("arms.toml", ARMS.format(steps=1) + "published_judge = true\n")
    folder = tmp_path / "study"
    words = ("study", arms, "--run", folder)
    here = "alone/problem-seed0: --set published_judge=true runs on this machine; leave out --ray"
    result = adaexplore(*words, "--ray", "127.0.0.1:1")
    assert (result.code, result.out) == (2, "")
    assert here in result.err
    assert not folder.exists()
    begin_order(read_study_file(arms, Config(run=str(folder))), "", "study")
    result = adaexplore("resume", folder, "--ray", "127.0.0.1:1")
    assert result.code == 2
    assert here in result.err
    assert not any(e["config"].get("ray") for e in read_manifest(folder)["order"]["entries"])


def test_a_study_that_is_stopped_goes_on(adaexplore, arms, proposer, tmp_path):
    folder = tmp_path / "study"
    proposer.interrupt_at = 2
    result = adaexplore("study", arms(2), "--run", folder, "--budget", "9steps")
    assert result.code == 130
    assert f"adaexplore resume {folder}" in result.out
    assert sum(steps(folder).values()) < 4
    proposer.interrupt_at = None
    assert adaexplore("study", folder).code == 0
    assert steps(folder) == {"alone/problem-seed0": 2, "tree/problem-seed0": 2}


@pytest.mark.slow
def test_prompts_of_all_arms_are_answered_in_files(adaexplore, arms, problem, prepared, tmp_path):
    folder = tmp_path / "study"
    first = adaexplore("study", arms(1), "--run", folder, *MANUAL)
    assert first.code == 0, first
    asked = sorted(folder.glob("asks/*/*/1.1.md"))
    assert [str(path.relative_to(folder / "asks")) for path in asked] == [
        "alone/problem-seed0/1.1.md",
        "tree/problem-seed0/1.1.md",
    ]
    source = problem.read_text().replace("class Model(", "class ModelNew(")
    for path in asked:
        path.with_name("1.1.reply.md").write_text(f"So.\n```python\n{source}```\n")
    assert adaexplore("resume", folder).code == 0
    assert set(steps(folder).values()) == {1}
    assert prepared == [0, 0]  # once in each round


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--policy", "uct"], "no such option"),
        (["--set", "policy=uct"], "arm tree sets it"),
        (["--preset", "adaexplore"], "--preset: write it into the file"),
        (["--set", "window=0"], "window=0"),
    ],
)
def test_bad_input_starts_nothing(adaexplore, arms, tmp_path, words, complaint):
    folder = tmp_path / "study"
    result = adaexplore("study", arms(1), "--run", folder, *words)
    assert result.code == 2
    assert complaint in result.err
    assert not folder.exists()


def test_the_memory_of_an_arm_is_read_before_anything_starts(adaexplore, arms, file, tmp_path):
    path, folder = arms(1), tmp_path / "study"
    file("arms.toml", path.read_text() + 'memory = "missing.toml"\n')
    result = adaexplore("study", path, "--run", folder, *MANUAL)
    assert result.code == 2
    assert "missing.toml: No such file" in result.err
    assert not folder.exists()


def test_a_file_with_arms_is_no_campaign(adaexplore, arms, tmp_path):
    path = arms(1)
    result = adaexplore("campaign", path, "--run", tmp_path / "night")
    assert result.code == 2
    assert f"{path} has arms: adaexplore study {path}" in result.err
    assert not (tmp_path / "night").exists()
