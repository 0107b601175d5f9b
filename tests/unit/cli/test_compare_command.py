"""`adaexplore compare` on recorded runs."""

import json
from dataclasses import replace

import pytest

from adaexplore.core.ask import Ask, Exchange
from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import Message, Prompt, Reply, Usage
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Cost, Failed, Passed, Timing
from adaexplore.store import RunRecord, create_run
from adaexplore.store.campaign import create_campaign

ENVIRONMENT = Environment(cpu="EPYC", threads=2, torch="2.13.0", triton="3.9.0")


def evaluation(speedup):
    cost = Cost(wall_s=2.0, device_s=1.0)
    if not speedup:
        return Failed("compile_error", "no such name: tmp0", cost=cost)
    ends = (speedup * 0.99, speedup * 1.01)
    timing = Timing(100 / speedup, (1.0, 2.0), {"eager": 100.0}, speedup, ends, speedup, 100)
    return Passed("fp32", 1e-7, timing, cost)


def record(
    path,
    *speedups,
    problem="softmax",
    policy="uct",
    model="",
    usd=None,
    counted=True,
    stray=0,
    seed=0,
    at=0.0,
    **changes,
):
    """A run that found these speedups, 0 for what failed; with a `model`, a call a step."""
    asked = Problem(problem, f"# {problem}", "cpp", "cpu", seed=seed)
    proposer = model or "compiler"
    facts = {
        "config": Config(policy=policy, stop_flat=0),
        "environment": ENVIRONMENT,
        **changes,
    }
    facts["config"] = facts["config"].model_copy(
        update={"seed": seed, "steps": max(len(speedups), 1)}
    )
    run = RunRecord(
        problem=asked,
        proposers=(proposer,),
        command="adaexplore explore ...",
        created_at=at,
        **facts,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with create_run(path, run) as directory:
        store, number = directory.store, 0
        for step, speedup in enumerate(speedups, 1):
            began = 1000.0 + 10 * step
            proposal = Proposal(Candidate(f"x = {step}", "cpp"), proposer, "")
            node = Node(step, 0, "large", proposal, evaluation(speedup), began, propose_s=3.0)
            if not model:
                store.record(node)
                continue
            for lost in range(stray, -1, -1):
                number += 1
                store.open_ask(Ask(number, 0, "large", 7, (), (), 0, proposer, began))
                usage = Usage(900, 100, cost_usd=usd) if counted else Usage()
                reply = Reply("Done.", proposer, usage=usage)
                store.add_call(
                    Exchange(number, Prompt((Message("user", "?"),), "large"), reply, began)
                )
                if lost:
                    store.expire(number)
            store.queue(number, proposal)
            store.record(replace(node, ask_id=number))
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [
        record(folder / "uct-softmax", 0, 1.5, 2.0),
        record(folder / "uct-norm", 1.0, 1.0, 1.0, problem="norm"),
        record(folder / "beam-softmax", 3.0, 3.0, 3.0, policy="beam", seed=5),
        record(folder / "beam-norm", 2.0, 2.0, 2.0, problem="norm", policy="beam"),
    ]


def compared(result, path):
    assert result.code == 0, result
    return json.loads(path.read_text())


def test_a_table_a_page_and_a_file(adaexplore, runs, tmp_path):
    page, file = tmp_path / "out.html", tmp_path / "out.json"
    result = adaexplore("compare", *runs, "--html", page, "--json", file)
    data = compared(result, file)
    assert "beam over uct at 3 steps: 1.73×" in result.out
    assert "won 2, tied 0, lost 0: too few to decide" in " ".join(result.out.split())
    assert data["arms"] == ["uct", "beam"]
    assert data["command"].startswith("adaexplore compare ")
    [group] = data["groups"]
    assert group["environment"] == "EPYC, 2 threads, torch 2.13.0, triton 3.9.0"
    [checkpoint] = group["checkpoints"]
    assert checkpoint["pairs"][0]["ratio"] == pytest.approx(3**0.5)
    assert checkpoint["pairs"][0]["decision"] == "too few"
    assert [effort["first_tries"] for effort in group["efforts"]] == [1, 2]
    assert "beam" in page.read_text()


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_a_full_disk_leaves_the_older_file(adaexplore, runs, tmp_path, fill_disk, option):
    file = tmp_path / "out"
    file.write_text("older")
    fill_disk()
    result = adaexplore("compare", *runs, option, file)
    assert (result.code, f"cannot write {file}: No space left" in result.err) == (2, True)
    assert file.read_text() == "older"
    assert list(tmp_path.iterdir()) == [file]


def test_an_export_of_a_run_beside_it_is_no_second_run(adaexplore, tmp_path):
    run, other = record(tmp_path / "a", 2.0, at=5.0), record(tmp_path / "b", 3.0, at=6.0)
    export, out = tmp_path / "a.json.xz", tmp_path / "out.json"
    adaexplore("export", run, "-o", export)
    data = compared(adaexplore("compare", export, run, other, "--json", out), out)
    assert f"{run} is {export} once more, and left out" in data["notes"]
    alone = compared(adaexplore("compare", run, other, "--json", out), out)
    assert data["groups"][0]["efforts"] == alone["groups"][0]["efforts"]


def test_a_campaign_stands_for_its_runs(adaexplore, tmp_path):
    for policy, speedup in (("uct", 2.0), ("beam", 4.0)):
        entries = [{"name": name} for name in ("softmax", "norm", "never-begun")]
        create_campaign(tmp_path / policy, {"order": {"entries": entries}})
        for name in ("softmax", "norm"):
            record(tmp_path / policy / name, speedup, problem=name, policy=policy)
    out = tmp_path / "out.json"
    for words in ([], ["--by", "folder"]):
        result = adaexplore("compare", tmp_path / "uct", tmp_path / "beam", *words, "--json", out)
        data = compared(result, out)
        assert data["arms"] == ["uct", "beam"]
        assert data["groups"][0]["checkpoints"][0]["problems"] == 2


def test_equal_money_counts_what_came_to_nothing(adaexplore, tmp_path):
    runs = [
        record(tmp_path / "a", 1.0, 2.0, 2.0, 2.0, model="some:model", usd=0.5),
        record(tmp_path / "b", 1.0, 4.0, policy="beam", model="some:model", usd=0.5, stray=1),
    ]
    out = tmp_path / "out.json"
    data = compared(adaexplore("compare", *runs, "--at", "1usd,2usd", "--json", out), out)
    first, second = data["groups"][0]["checkpoints"]
    assert first["pairs"][0]["ratio"] == pytest.approx(1.0 / 2.0)
    assert second["pairs"][0]["ratio"] == pytest.approx(4.0 / 2.0)
    used = [effort["used"] for effort in data["groups"][0]["efforts"]]
    assert [(one["usd"], one["tokens"], one["steps"]) for one in used] == [
        (2, 4000, 4),
        (2, 4000, 2),
    ]


@pytest.mark.parametrize(
    ("at", "places"),
    [
        ("", [3]),
        ("1,2steps", [1, 2]),
        ("evaluations", [3]),
        ("3evaluations", [3]),
        ("5s,10s", [5, 10]),
        ("s", [3.7, 7.5, 15]),
    ],
)
def test_where_to_compare(adaexplore, runs, tmp_path, at, places):
    out = tmp_path / "out.json"
    data = compared(adaexplore("compare", *runs, "--at", at, "--json", out), out)
    assert data["groups"][0]["places"] == pytest.approx(places)


def test_a_run_that_stopped_by_itself_stays_where_it_is(adaexplore, tmp_path):
    patient = Config(policy="uct", stop_flat=3)
    runs = [
        record(tmp_path / "a", 2.0, 2.0, 2.0, 2.0, config=patient),
        record(tmp_path / "b", 2.0, 2.0, 2.0, 2.0, 2.0, 3.0, policy="beam"),
    ]
    out = tmp_path / "out.json"
    data = compared(adaexplore("compare", *runs, "--by", "policy", "--json", out), out)
    assert data["groups"][0]["places"] == [6]
    assert data["groups"][0]["checkpoints"][0]["pairs"][0]["ratio"] == pytest.approx(1.5)


def test_an_exported_run_without_its_problem_is_known_by_name(adaexplore, runs, tmp_path):
    thin = [tmp_path / f"{i}.json.xz" for i in (0, 2)]
    for run, file in zip((runs[0], runs[2]), thin, strict=True):
        assert adaexplore("export", run, "-o", file, "--without-problem").code == 0
    out = tmp_path / "out.json"
    data = compared(adaexplore("compare", *thin, "--json", out), out)
    assert data["groups"][0]["checkpoints"][0]["pairs"][0]["ratio"] == pytest.approx(1.5)


def test_tokens_of_prompts_that_were_left_out_are_not_known(adaexplore, tmp_path):
    run, thin = (
        record(tmp_path / "a", 2.0, model="some:model", counted=False),
        tmp_path / "a.json.xz",
    )
    assert adaexplore("export", run, "-o", thin, "--without-problem").code == 0
    assert "exported without its prompts" in adaexplore("compare", thin, "--at", "tok").complaint
    assert adaexplore("compare", run, "--at", "tok").code == 0


def test_prompts_of_the_package_make_no_arms_and_own_templates_do(adaexplore, runs, tmp_path):
    model, out = {"model": "some:model", "usd": 0.1}, tmp_path / "out.json"
    plan = {"proposers": ["some:model"], "prompts_digest": "0" * 64}
    first = record(tmp_path / "a", 2.0, **model)
    later = record(tmp_path / "b", 2.0, **model, plan=plan)
    own = record(tmp_path / "c", 2.0, **model, plan=plan | {"templates": {"system.j2": "Be fast."}})
    data = compared(adaexplore("compare", first, later, own, "--json", out), out)
    assert data["arms"][0] == "prompts=bundled"
    assert [effort["runs"] for effort in data["groups"][0]["efforts"]] == [2, 1]


def test_one_arm_is_said_to_be_one(adaexplore, runs):
    result = adaexplore("compare", *runs[:2])
    assert result.code == 0
    assert "there is one arm" in result.out


def test_a_run_without_a_step_is_said_to_have_none(adaexplore, runs, tmp_path):
    empty = record(tmp_path / "empty", policy="beam")
    assert "has no step yet" in " ".join(adaexplore("compare", *runs, empty).out.split())
    assert "has a step" in adaexplore("compare", empty).complaint


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--by", "polcy"], "did you mean policy"),
        (["--by", "policy,nothing"], "--by nothing"),
        (["--at", "5x"], "--at 5x: write it as 10,25,50"),
        (["--at", "0"], "--at 0"),
        (["--at", "1usd,5"], "usd and steps are two axes"),
        (["--at", "10,"], "write it as"),
        (["--at", "usd"], "used no usd"),
        (["--json", "/nowhere/out.json"], "cannot write"),
    ],
)
def test_what_cannot_be(adaexplore, runs, words, said):
    result = adaexplore("compare", *runs, *words)
    assert result.code == 2
    assert said in result.err
    assert len(result.err.splitlines()) == 1


def test_money_of_unknown_price_is_compared_by_tokens(adaexplore, tmp_path):
    run = record(tmp_path / "a", 2.0, model="some:model")
    assert (
        "compare at equal tokens: --at tok" in adaexplore("compare", run, "--at", "usd").complaint
    )
    result = adaexplore("compare", run, "--at", "tok")
    assert result.code == 0
    assert "unknown" in result.out


def test_what_is_no_run(adaexplore, tmp_path):
    assert "does not exist" in adaexplore("compare", tmp_path / "x").complaint
    create_campaign(tmp_path / "none", {"order": {"entries": [{"name": "a"}]}})
    assert "a campaign without a run" in adaexplore("compare", tmp_path / "none").complaint
