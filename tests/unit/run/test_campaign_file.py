"""What a campaign is to run: files, tables, defaults, and what may be wrong with them."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.errors import BadInputError
from adaexplore.run.campaign_file import (
    CampaignFile,
    Entry,
    Options,
    ProblemTable,
    entries,
    read_campaign_file,
)

NOTHING = Options()


@pytest.fixture
def folder(tmp_path):
    for name in ("a.py", "b.py", "level2/1.py", "level2/2.py", "level3/1.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    return tmp_path


@pytest.fixture
def listed(folder):
    def listed(text, said=NOTHING):
        path = folder / "problems.toml"
        path.write_text(text)
        return entries(read_campaign_file(path), folder, said)

    return listed


def test_defaults_tables_and_the_command_line_in_this_order(listed):
    text = """
        [defaults]
        precision = "tf32"
        steps = 30
        settings = { c = 0.1, window = 3 }
        [[problem]]
        file = "a.py"
        [[problem]]
        file = "b.py"
        precision = "half"
        device = "cuda:0, cuda:1"
        settings = { window = 4 }
        model = ["openai:x", "openai:y"]
        proposer = "compiler"
    """
    a, b = listed(text, Options(steps=7, settings={"c": 0.5}))
    assert (a.precision, b.precision, a.steps, b.steps) == ("tf32", "half", 7, 7)
    assert (a.parsed_settings().c, b.parsed_settings().c) == (0.5, 0.5)
    assert (a.parsed_settings().window, b.parsed_settings().window) == (3, 4)
    assert (a.devices, b.devices) == ((), ("cuda:0", "cuda:1"))
    assert a.proposers == ("compiler",)
    assert b.proposers == ("openai:x", "openai:y", "compiler")


def test_searches_of_a_campaign_stop_by_themselves_unless_told_otherwise(listed):
    [a] = listed('[[problem]]\nfile = "a.py"')
    assert (a.parsed_settings().stop_near, a.parsed_settings().stop_flat) == (0.9, 40)
    [a] = listed('[[problem]]\nfile = "a.py"\nsettings = { stop_flat = 0, confirm = false }')
    assert a.parsed_settings().stop_flat == 0
    assert a.parsed_settings().confirm is False


def test_patterns_are_relative_to_the_file_and_names_tell_problems_apart(listed, folder):
    found = listed('[[problem]]\nfiles = ["level*/*.py", "a.py"]')
    assert [entry.name for entry in found] == ["level2-1", "2", "level3-1", "a"]
    assert all(entry.path.startswith(str(folder)) for entry in found)


def test_the_same_files_in_two_classes(listed):
    text = '[[problem]]\nfiles = "level2/*.py"\n[[problem]]\nfiles = "level2/*.py"\n'
    found = listed(text + 'precision = "tf32"')
    assert [entry.name for entry in found] == ["1-fp32", "2-fp32", "1-tf32", "2-tf32"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there are no problems"),
        ("problem = []", "there are no problems"),
        ("[[problems]]\nfile = 'a.py'", "problems: no such key; did you mean problem"),
        ("[defaults]\nprecison = 'fp32'", "defaults.precison: no such key; did you mean precision"),
        ("[[problem]]\nfile = 'a.py'\nstep = 4", "problem.0.step: no such key; did you mean steps"),
        ("[[problem]]\nfile = 'a.py'\nqqq = 4", "problem.0.qqq: no such key; known: language"),
        ("[[problem]]\nfile = 'a.py'\nprecision = 'fp8'", "problem.0.precision: Input should be"),
        ("[[problem]]\nfile = 'a.py'\nsteps = 0", "problem.0.steps: Input should be greater"),
        ("parallel = 0", "parallel: Input should be greater"),
        ("allocation = 'fair'", "allocation: Input should be 'headroom' or 'uniform'"),
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
        ("[[problem]]\nfile = 'a.py'\nsettings = { windw = 3 }", "did you mean window"),
        ("[[problem]]\nfile = 'a.py'\nmodel = 'compiler'", "that is no model"),
        ("[[problem]", "is not TOML"),
    ],
)
def test_what_may_be_wrong_is_said_in_one_line(listed, text, words):
    with pytest.raises(BadInputError) as caught:
        listed(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BadInputError, match="cannot read"):
        read_campaign_file(tmp_path / "none.toml")


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
    tables = [ProblemTable(file=f"{file}.py", precision=precision) for file, precision in wanted]
    found = entries(CampaignFile(problem=tables), tmp_path_factory.getbasetemp(), NOTHING)
    assert len({entry.name for entry in found}) == len(wanted)
    assert [Entry.from_json(entry.to_json()) for entry in found] == found
