"""The commands import, export and diff."""

import json

import pytest

from adaexplore.memory import BUNDLED, load_memory, memory_path, save_memory

TARGET = ("--device", "cpu", "--target", "sm_90")
NAMES = ("no-break", "softmax-minus-maximum", "no-tl-log1p")


@pytest.fixture(scope="module")
def rules():
    return {rule.name: rule for rule in load_memory(memory_path(BUNDLED))}


@pytest.fixture
def memory(tmp_path, rules):
    path = tmp_path / "memory.toml"
    save_memory(path, [rules[name] for name in NAMES])
    return path


def test_json_goes_out_and_comes_in(lab, memory, tmp_path):
    out, back = tmp_path / "memory.json", tmp_path / "back.toml"
    assert lab("export", memory, "-o", out).code == 0
    assert json.loads(out.read_text())["no-break"]["kind"] == "compile"
    assert lab("import", out, "-o", back).code == 0
    assert load_memory(back) == load_memory(memory)


def test_what_is_imported_is_added(lab, memory, tmp_path, rules):
    more = tmp_path / "more.toml"
    save_memory(more, [rules["no-continue"], rules["no-break"]])
    assert lab("import", more, "-o", memory).code == 0
    assert {rule.name for rule in load_memory(memory)} == {*NAMES, "no-continue"}


def test_the_name_of_an_export_says_how_it_is_written(lab, memory, tmp_path):
    assert lab("export", memory, "-o", tmp_path / "m.md").code == 0
    assert (tmp_path / "m.md").read_text().startswith("# Rules of Triton")
    assert lab("export", memory, "-o", tmp_path / "m.txt").code == 0
    assert len((tmp_path / "m.txt").read_text().splitlines()) == len(NAMES)
    refused = lab("export", memory, "-o", tmp_path / "m.doc")
    assert "its name is to end in .json" in refused.complaint


def test_statements_count_where_a_rule_bears_them_out(lab, file, tmp_path, memory):
    lines = file(
        "rules.txt",
        "There is no tl.log1p.||7\nNever use `break` in a kernel.||5\n"
        "tl.sum has no keyword argument dtype.||4\nThe attribute x.y of line 3 is none.||9\n"
        "tl.frobnicate wants a whizzle.||3\nSeldom.||1\n",
    )
    out = tmp_path / "out.toml"
    took = lab("import", lines, "--known", memory, "-o", out, *TARGET)
    assert took.code == 0, took
    assert "5 statements: 2 witnessed, 1 stale, 1 unverified, 1 no rule" in took.out
    assert {r.name: (r.support, r.source) for r in load_memory(out)} == {
        "no-break": (18, "import"),
        "no-tl-log1p": (7, "import"),
    }
