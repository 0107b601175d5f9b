import pytest
from trained_runs import BEST, SOURCE, STEPS, write_run

from adaexplore.run.training.forms import FORMS
from adaexplore.run.training.recorded import recorded_runs


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    [run] = recorded_runs([write_run(tmp_path_factory.mktemp("runs") / "mine")])
    return run


@pytest.fixture(scope="module")
def rows(run):
    return lambda form, reward="log": list(FORMS[form]([run], reward))


def number(text):
    return int(text.rpartition("number = ")[2].partition("\n")[0])


def test_a_problem_is_one_row_of_verl_whatever_the_number_of_its_runs(run):
    [row] = FORMS["rl"]([run, run], "tritonforge")
    assert row["data_source"] == "adaexplore"
    assert row["reward_model"] == {"style": "rule", "ground_truth": SOURCE}
    [message] = row["prompt"]
    assert message["role"] == "user"
    assert SOURCE.strip() in message["content"]
    found = row["extra_info"]
    assert (found["best_reward"], found["best_speedup"]) == (2.3, 3.1)
    assert (found["entry_point"], found["uuid"]) == ("Model", run.problem.digest)


def test_the_path_to_the_winner_is_a_conversation_with_each_verdict_between(rows, run):
    [row] = rows("sft")
    assert row["step"] == BEST
    roles = [message["role"] for message in row["messages"]]
    assert roles == ["user", "assistant"] * 3
    assert row["turns"] == 3
    assert [number(m["content"]) for m in row["messages"][1::2]] == [2, 3, BEST]
    assert row["messages"][2]["content"].startswith("1.5")
    assert "as an example" not in row["messages"][2]["content"]


def test_steps_count_where_they_gain_for_certain(rows):
    gains = {row["step"]: row["gain"] for row in rows("sft-steps")}
    assert gains == pytest.approx({2: 1.5, 3: 2.0, 5: 2.98 / 1.5, 7: 1.1})


def test_a_step_of_a_model_is_in_the_models_words_and_any_other_in_the_tasks(rows):
    messages = {row["step"]: row["messages"] for row in rows("sft-steps")}
    assert messages[3] == [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "quoted"},
        {"role": "assistant", "content": "a patch"},
    ]
    task, reply = messages[5]
    assert number(task["content"]) == 2  # its parent
    assert "1.5" in task["content"]
    assert reply["content"].startswith("idea 5\n\n```python\nclass ModelNew: number = 5\n```")


def pairs(rows):
    return [
        (number(row["chosen"][0]["content"]), number(row["rejected"][0]["content"])) for row in rows
    ]


def test_a_pair_has_one_parent_and_a_certain_order(rows):
    """Step 5 is as fast as 3 within the noise; 6 was never judged; 10 has no sibling."""
    found = rows("preferences")
    assert pairs(found) == [(2, 1), (3, 4), (3, 11), (8, 7)]
    prompts = [row["prompt"][0]["content"] for row in found]
    assert ["The current kernel:" in prompt for prompt in prompts] == [False, True, True, True]
    assert all(row["rejected_reward"] < row["reward"] for row in found)


def test_the_reward_decides_what_a_decoy_is_worth(rows):
    """Dr.Kernel gives a decoy -1: it is rejected, and never chosen."""
    assert (8, 9) in pairs(rows("preferences", "drkernel-staircase"))
    assert all(9 not in pair for pair in pairs(rows("preferences", "kernrl")))


@pytest.mark.parametrize("form", FORMS)
def test_every_row_names_the_licence(rows, form):
    assert {row["license"] for row in rows(form)} == {"MIT"}


def test_a_kernel_that_failed_its_confirmation_is_no_example(tmp_path):
    path = write_run(tmp_path / "run", confirmed=[(BEST, STEPS[4][1])])
    [run] = recorded_runs([path])
    [row] = FORMS["sft"]([run], "log")
    assert row["step"] == 3
    assert all(8 not in pair[:1] for pair in pairs(FORMS["preferences"]([run], "log")))
