"""The file of a study: its runs, and what it refuses."""

from pathlib import Path

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.core.settings.config import Config
from adaexplore.run.campaign.file import CampaignPlan
from adaexplore.run.study.file import read_study_file

PROBLEMS = '[[problem]]\nfiles = "*.py"\n'
ARMS = """
[[arm]]
name = "published"
preset = "adaexplore-l2"
[[arm]]
name = "no-reviser"
preset = "adaexplore-l2"
reviser = false
[[arm]]
name = "ps"
policy = "ps"
memory = "none"
"""


@pytest.fixture
def read(file):
    for name in ("one.py", "two.py"):
        file(name, "")

    def read(text, **given):
        return read_study_file(file("arms.toml", text), Config(**given))

    return read


def test_every_problem_is_searched_with_every_seed_by_every_arm(read):
    order = read(f"steps = 8\nseeds = [3, 5]\n{PROBLEMS}{ARMS}")
    assert order.arms == ("published", "no-reviser", "ps")
    assert [entry.name for entry in order.entries] == [
        f"{arm}/{problem}-seed{seed}"
        for problem in ("one", "two")
        for seed in (3, 5)
        for arm in order.arms
    ]
    assert {entry.config.steps for entry in order.entries} == {8}  # not the preset's 50
    first, second, third = (entry.config for entry in order.entries[:3])
    assert (first.preset, first.reviser, first.policy) == ("adaexplore-l2", True, "uct")
    assert first.model_copy(update={"reviser": False}) == second
    assert (third.preset, third.policy, third.memory) == (None, "ps", "none")
    assert CampaignPlan.from_json(order.to_json()) == order


@pytest.mark.parametrize(
    ("parallel", "device", "problems"),
    [
        (1, "cuda:0", 1),
        (6, "cuda:0", 1),
        (7, "cuda:0", 2),
        (64, "cuda:0", 2),
        (64, "cuda:0,cuda:1", 1),
    ],
)
def test_problems_share_a_device_when_their_runs_are_in_flight_together(
    read, parallel, device, problems
):
    order = read(f"seeds = 2\n{PROBLEMS}{ARMS}", parallel=parallel, device=device)
    assert len(order.entries) == 12  # six of each problem
    assert order.problems_of_a_device == problems


def test_runs_of_a_problem_have_the_same_weights_and_inputs(read):
    order = read(f"seeds = [3, 5]\n{PROBLEMS}{ARMS}")
    assert {entry.config.seed for entry in order.entries} == {3, 5}
    assert {entry.config.problem_seed for entry in order.entries} == {3}


def test_no_search_ends_early_by_a_default(read):
    order = read(PROBLEMS + ARMS)
    assert {(e.config.stop_near, e.config.stop_flat) for e in order.entries} == {(0.0, 0)}
    assert order.config.allocation == "uniform"


def test_an_arm_goes_before_a_problem_and_the_command_line_before_both(read):
    problem = PROBLEMS + "window = 2\npool_size = 3\nsteps = 4\n"
    order = read(problem + '[[arm]]\nname = "a"\nwindow = 7\n', pool_size=1, steps=9)
    config = order.entries[0].config
    assert (config.window, config.pool_size, config.steps) == (7, 1, 9)


def test_the_command_line_goes_before_the_preset_of_an_arm(read):
    order = read(PROBLEMS + ARMS, published_judge=False, confirm=False)
    assert not any(entry.config.published_judge for entry in order.entries)


EXAMPLES = Path(__file__).parents[4] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("study_*.toml")), ids=lambda path: path.stem)
def test_the_examples_are_studies(path):
    order = read_study_file(path, Config())
    assert len(order.entries) % (2 * len(order.arms)) == 0


def test_every_published_ablation_leaves_out_one_thing():
    order = read_study_file(EXAMPLES / "study_ablations.toml", Config())
    whole, *others = (entry.config for entry in order.entries[: len(order.arms)])
    left_out = {}
    for arm, config in zip(order.arms[1:7], others, strict=False):
        differ = {k for k in Config.model_fields if getattr(config, k) != getattr(whole, k)}
        left_out[arm] = {key: getattr(config, key) for key in differ}
    assert left_out == {
        "no-small-steps": {"step_kinds": "large"},
        "no-large-steps": {"step_kinds": "small"},
        "no-reviser": {"reviser": False},
        "no-memory": {"memory": "none"},
        "no-pool": {"pool_size": 0},
        "verdict-alone": {"feedback": "verdict"},
    }


ONE = '[[arm]]\nname = "a"\n'
REFUSED = {
    f"{PROBLEMS}": "there are no arms",
    f"{ONE}": "there are no problems",
    f"{PROBLEMS}[[arms]]\n": "arms: no such key; did you mean arm",
    "problems = []\n": "problems: no such key; did you mean problem",
    f"{PROBLEMS}{ONE}revizer = false": "arm a: revizer: no such key; did you mean reviser",
    f"{PROBLEMS}{ONE}reviser = 3": "arm a: reviser = 3: ",
    f"{PROBLEMS}{ONE}{ONE}reviser = false": "arm a: 2 arms have this name",
    f'{PROBLEMS}{ONE}[[arm]]\nname = "A"\nreviser = false': "arm a: 2 arms have this name",
    f'{PROBLEMS}{ONE}[[arm]]\nname = "b"\nreviser = true': "arm b: it has the same settings as arm",
    f"{PROBLEMS}[[arm]]\nreviser = false": "arm.0.name = None",
    f'{PROBLEMS}[[arm]]\nname = "a/b"': "arm.0.name = 'a/b'",
    f'{PROBLEMS}[[arm]]\nname = "asks"': "arm asks: the study's folder has another asks",
    **{
        f"{PROBLEMS}{ONE}{key} = {value}": f"arm a: {key}: a study has it once"
        for key, value in {
            "budget": '"1usd"',
            "parallel": 2,
            "steps": 3,
            "seed": 1,
            "turn_steps": 2,
            "allocation": '"uniform"',
            "device": '"cpu"',
            "precision": '"half"',
            "temperature": 0.5,
            "record": '"r"',
        }.items()
    },
    f"seeds = 0\n{PROBLEMS}{ONE}": "seeds = 0: write a number up to 1000, or a list",
    f"seeds = [1, 1]\n{PROBLEMS}{ONE}": "seeds = [1, 1]: write a number up to 1000, or a list",
    f"seeds = [-1, 2]\n{PROBLEMS}{ONE}": "seeds: -1: Input should be greater than or equal to 0",
    f"seeds = [{2**31}]\n{PROBLEMS}{ONE}": f"seeds: {2**31}: Input should be less than",
    f"seed = 1\n{PROBLEMS}{ONE}": "seed: a study has several",
    f'memory_update = "m.toml"\n{PROBLEMS}{ONE}': "memory_update: the arms of a study would learn",
    f'allocation = "headroom"\n{PROBLEMS}{ONE}': "allocation: a study gives every run the same",
    f"arm = 3\n{PROBLEMS}": "arm is no table",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_file_that_cannot_be_carried_out_is_refused_in_one_line(read, text):
    with pytest.raises(BadInputError) as error:
        read(text)
    message = str(error.value)
    assert "arms.toml: " in message
    assert REFUSED[text] in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"policy": "uct"}, "--policy: arm ps sets it"),
        ({"reviser": True}, "--reviser: arm no-reviser sets it"),
        ({"preset": "adaexplore"}, "--preset: "),
        ({"seed": 1}, "--seed: a study has several"),
        ({"first_steps": 3}, "--first-steps: a study gives every run the same share"),
    ],
)
def test_the_command_line_does_not_undo_the_arms(read, given, words):
    with pytest.raises(BadInputError, match=words):
        read(PROBLEMS + ARMS, **given)
