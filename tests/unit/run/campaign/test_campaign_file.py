"""Campaign files: tables, top-level keys, the command line, and faults."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flashinfer_files
from adaexplore.core.errors import BadInputError
from adaexplore.core.settings.config import Config
from adaexplore.run.campaign.file import (
    CampaignEntry,
    CampaignPlan,
    campaign_order,
    read_campaign_file,
)

NOTHING = Config()


@pytest.fixture
def folder(tmp_path):
    for name in ("a.py", "b.py", "level2/1.py", "level2/2.py", "level3/1.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    return tmp_path


@pytest.fixture
def ordered(folder):
    def ordered(text, given=NOTHING):
        path = folder / "problems.toml"
        path.write_text(text)
        return read_campaign_file(path, given)

    return ordered


@pytest.fixture
def listed(ordered):
    return lambda text, given=NOTHING: ordered(text, given).entries


def test_the_command_line_overrides_tables_and_tables_override_the_top(listed):
    text = """
        precision = "tf32"
        steps = 30
        c = 0.1
        window = 3
        [[problem]]
        file = "a.py"
        [[problem]]
        file = "b.py"
        precision = "half"
        device = "cuda:0, cuda:1"
        window = 4
        model = ["openai:x", "openai:y"]
        proposer = "compiler"
    """
    a, b = listed(text, Config(steps=7, c=0.5))
    assert (a.config.precision, b.config.precision) == ("tf32", "half")
    assert (a.config.steps, b.config.steps) == (7, 7)
    assert (a.config.c, b.config.c) == (0.5, 0.5)
    assert (a.config.window, b.config.window) == (3, 4)
    assert (a.devices, b.devices) == ((), ("cuda:0", "cuda:1"))
    assert (a.config.model, a.config.proposer) == ((), None)
    assert (b.config.model, b.config.proposer) == (("openai:x", "openai:y"), "compiler")


def test_searches_of_a_campaign_stop_by_themselves_unless_told_otherwise(listed):
    [a] = listed('[[problem]]\nfile = "a.py"')
    assert (a.config.stop_near, a.config.stop_flat) == (0.9, 40)
    [a] = listed('[[problem]]\nfile = "a.py"\nstop_flat = 0\nconfirm = false')
    assert (a.config.stop_flat, a.config.confirm) == (0, False)


def test_a_preset_goes_before_the_defaults_of_a_campaign(ordered):
    order = ordered('preset = "adaexplore-l3"\nc = 0.7\nrepair = true\n[[problem]]\nfile = "a.py"')
    [a] = order.entries
    assert (a.config.stop_near, a.config.stop_flat, a.config.steps) == (0, 0, 50)
    assert (a.config.expand_ratio, a.config.c, a.config.repair) == (0.5, 0.7, True)
    assert CampaignPlan.from_json(order.to_json()) == order


def test_the_budget_is_the_campaigns_alone(ordered):
    order = ordered('budget = "90steps"\nparallel = 4\n[[problem]]\nfile = "a.py"')
    assert (order.config.limits.steps, order.config.parallel) == (90, 4)
    [a] = order.entries
    assert (a.config.budget, a.config.parallel, a.config.steps) == (None, 1, None)


def test_without_a_budget_every_problem_has_a_number_of_steps(listed):
    [a] = listed('[[problem]]\nfile = "a.py"')
    assert a.config.steps == 20


def test_patterns_are_relative_to_the_file_and_names_tell_problems_apart(listed, folder):
    found = listed('[[problem]]\nfiles = ["level*/*.py", "a.py"]')
    assert [entry.name for entry in found] == ["level2-1", "2", "level3-1", "a"]
    assert all(entry.path.startswith(str(folder)) for entry in found)


def test_folders_are_relative_to_the_file(ordered, folder):
    order = ordered('prompts = "mine"\n[[problem]]\nfile = "a.py"')
    assert order.config.prompts == order.entries[0].config.prompts == str(folder / "mine")


@pytest.mark.parametrize(
    ("written", "meant"), [("mine.toml", "mine.toml"), ("bundled", None), ("none", None)]
)
def test_a_memory_is_a_file_beside_the_order_or_a_name(ordered, folder, written, meant):
    order = ordered(f'memory = "{written}"\n[[problem]]\nfile = "a.py"')
    assert order.config.memory == (str(folder / meant) if meant else written)


def test_the_same_files_in_two_classes(listed):
    text = '[[problem]]\nfiles = "level2/*.py"\n[[problem]]\nfiles = "level2/*.py"\n'
    found = listed(text + 'precision = "tf32"')
    assert [entry.name for entry in found] == ["1-fp32", "2-fp32", "1-tf32", "2-tf32"]


def test_problem_files_need_no_toml(folder):
    order = campaign_order([folder / "a.py", folder / "b.py"], Config(steps=3))
    assert [(e.name, e.config.steps) for e in order.entries] == [("a", 3), ("b", 3)]


class TestDatasets:
    @pytest.fixture
    def dataset(self, tmp_path):
        return flashinfer_files.put(tmp_path / "data", flashinfer_files.DATASET)

    def test_an_op_type_is_a_campaign(self, dataset):
        [entry] = campaign_order([dataset], NOTHING, "rmsnorm").entries
        assert (entry.name, entry.path) == (
            "norm_h64",
            str(dataset / "definitions/rmsnorm/norm_h64.json"),
        )

    def test_a_dataset_is_a_campaign_of_its_definitions(self, dataset):
        names = [entry.name for entry in campaign_order([dataset], NOTHING).entries]
        assert names == ["paged_d8", "norm_h64", "sampling_v16"]

    def test_a_table_may_name_a_definition(self, ordered, dataset):
        table = f'[[problem]]\nfile = "{dataset}"\ndefinition = "norm_h64"\nworkloads = "2"'
        [entry] = ordered(table).entries
        assert (entry.name, entry.config.workloads) == ("norm_h64", "2")

    def test_tasks_are_named_by_their_folders(self, tmp_path):
        tasks = flashinfer_files.put(tmp_path / "tasks", flashinfer_files.TASKS)
        names = [entry.name for entry in campaign_order([tasks], NOTHING).entries]
        assert names == ["rope_half", "custom_matmul"]

    @pytest.mark.parametrize(
        ("what", "op_type", "why"),
        [
            ("data", "gemm", "no op type gemm; it has gqa_paged, rmsnorm, samp"),
            ("a.py", "gemm", "is no dataset"),
        ],
    )
    def test_an_op_type_that_is_not_there_is_refused(self, dataset, folder, what, op_type, why):
        with pytest.raises(BadInputError, match=why):
            campaign_order([folder / what], NOTHING, op_type)


def test_a_campaign_that_continues_may_change(ordered):
    order = ordered('[[problem]]\nfile = "a.py"').changed(Config(steps=9, budget="2h"))
    assert order.config.budget == "2h"
    assert (order.entries[0].config.steps, order.entries[0].config.budget) == (9, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there are no problems"),
        ("problem = []", "there are no problems"),
        ("problem = 3", "problem is no table"),
        ("[[problems]]\nfile = 'a.py'", "problems: no such key; did you mean problem"),
        ("precison = 'fp32'", "precison: no such key; did you mean precision"),
        ("[[problem]]\nfile = 'a.py'\nstep = 4", "problem.0.step: no such key; did you mean"),
        ("[[problem]]\nfile = 'a.py'\nqqq = 4", "problem.0.qqq: no such key; known: file"),
        ("[[problem]]\nfile = 'a.py'\nbudget = '1h'", "problem.0.budget: a campaign has it once"),
        (
            "[[problem]]\nfile = 'a.py'\nprecision = 'fp8'",
            "problem.0.precision = 'fp8': Input should be",
        ),
        (
            "[[problem]]\nfile = 'a.py'\nsteps = 0",
            "problem.0.steps = 0: Input should be greater",
        ),
        ("parallel = 0", "parallel = 0: Input should be greater"),
        ("allocation = 'fair'", "allocation = 'fair': Input should be 'headroom' or 'uniform'"),
        ("[[problem]]\nname = 'x'", "either file or files"),
        ("[[problem]]\nfile = 'a.py'\nfiles = 'b.py'", "either file or files"),
        ("[[problem]]\nfiles = 'nosuch/*.py'", "'nosuch/*.py' matches nothing in "),
        ("[[problem]]\nfiles = ''", "files = ''"),
        ("[[problem]]\nfiles = 'level2/*.py'\nname = 'x'", "name = 'x' is for one file"),
        ("[[problem]]\nfiles = ['a.py', '*.py']", "a.py is there twice, both times in fp32"),
        (
            "[[problem]]\nfile = 'a.py'\nname = 'x'\n[[problem]]\nfile = 'b.py'\nname = 'x'",
            "2 problems would be called x",
        ),
        ("[[problem]]\nfile = 'a.py'\nname = '../x'", "it is a folder's"),
        ("[[problem]]\nfile = 'a.py'\nwindw = 3", "did you mean window"),
        ("[[problem]", "is not TOML"),
    ],
)
def test_a_fault_is_named_in_one_line(listed, text, words):
    with pytest.raises(BadInputError) as caught:
        listed(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BadInputError, match="cannot read"):
        read_campaign_file(tmp_path / "none.toml")
    with pytest.raises(BadInputError, match="is no regular file; give a TOML file"):
        read_campaign_file(Path("/dev/zero"))


@given(st.text())
def test_any_text_is_a_file_or_bad_input(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text(text, encoding="utf-8")
    with contextlib.suppress(BadInputError):
        assert read_campaign_file(path)


@given(
    st.lists(
        st.tuples(st.sampled_from(["x/a", "y/a", "x/b"]), st.sampled_from(["fp32", "tf32"])),
        min_size=1,
        unique=True,
    )
)
def test_names_are_unique_and_survive_json(tmp_path_factory, wanted):
    path = tmp_path_factory.getbasetemp() / "named.toml"
    for file, _ in wanted:
        (path.parent / file).parent.mkdir(exist_ok=True)
        (path.parent / f"{file}.py").touch()
    tables = [f"[[problem]]\nfile = '{file}.py'\nprecision = '{kind}'\n" for file, kind in wanted]
    path.write_text("".join(tables))
    order = read_campaign_file(path)
    assert len({entry.name for entry in order.entries}) == len(wanted)
    assert CampaignPlan.from_json(order.to_json()) == order
    assert [CampaignEntry.from_json(e.to_json()) for e in order.entries] == list(order.entries)


class TestTasks:
    """Tables that choose tasks of a benchmark."""

    @pytest.fixture
    def data(self, folder):
        for name in ("level1/1_Relu.py", "level1/2_Gelu.py", "level2/1_Relu.py"):
            path = folder / "kb" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {name}\n")

    def test_a_table_chooses_tasks_that_are_written_into_the_folder(self, ordered, data):
        order = ordered(
            """
            steps = 3
            [[problem]]
            benchmark = "kernelbench"
            data = "kb"
            problems = ["1 1-2", "2 1"]
            [[problem]]
            benchmark = "kernelbench"
            data = "kb"
            category = "2"
            precision = "tf32"
            [[problem]]
            file = "a.py"
            """
        )
        assert [(e.name, e.category, e.config.precision) for e in order.entries] == [
            ("level_1-1_Relu-fp32", "level 1", "fp32"),
            ("2_Gelu", "level 1", "fp32"),
            ("level_2-1_Relu-fp32", "level 2", "fp32"),
            ("level_2-1_Relu-tf32", "level 2", "tf32"),
            ("a", "", "fp32"),
        ]
        places = [entry.path for entry in order.entries[:3]]
        assert order.files[places[2]] == "# level2/1_Relu.py\n"
        assert set(places) == set(order.files)
        assert CampaignPlan.from_json(order.to_json()) == order

    @pytest.mark.parametrize(
        ("lines", "complaint"),
        [
            ('benchmark = "kernelbank"', "no such benchmark; known: kernelbench"),
            ('benchmark = "kernelbench"', "neither in KernelBench/ nor in"),
            ('benchmark = "kernelbench"\ndata = "none"', "no file level<L>/"),
            ('benchmark = "kernelbench"\ndata = "kb"\nproblems = "3 1"', "--category 3"),
            ('benchmark = "kernelbench"\ndata = "kb"\nsample = -1', "is no number"),
        ],
    )
    def test_a_table_that_chooses_nothing_is_refused(self, ordered, data, lines, complaint):
        with pytest.raises(BadInputError, match=complaint):
            ordered(f"[[problem]]\n{lines}\n")
