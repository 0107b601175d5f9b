"""adapt and memory: rules as files, tried, taken over and shown to models."""

import dataclasses
import json

import pytest

from adaexplore.core.evaluation import Estimate, Failed, Passed
from adaexplore.core.rule import Platform
from adaexplore.memory.check import Checked
from adaexplore.memory.files import BUNDLED, load, memory_path, save
from adaexplore.run import check_rules as adapt
from adaexplore.store import read_run

ESTIMATE = Estimate(1.0, "memory", "sm_90")
TARGET = ("--device", "cpu", "--target", "sm_90")
NAMES = ("no-break", "softmax-minus-maximum", "no-tl-log1p")


@pytest.fixture(scope="module")
def rules():
    return {rule.name: rule for rule in load(memory_path(BUNDLED))}


@pytest.fixture
def memory(tmp_path, rules):
    path = tmp_path / "memory.toml"
    save(path, [rules[name] for name in NAMES])
    return path


class TestFiles:
    def test_the_bundled_one_is_there_without_a_file(self, adaexplore):
        listed = adaexplore("memory", "list")
        assert "no-break" in listed.out
        assert f"{len(load(memory_path(BUNDLED)))} rules" in listed.out
        shown = adaexplore("memory", "show", "no-element-of-a-block")
        assert "holds on: Triton 3.6.0 (sm_90)" in shown.out
        assert "tl.store" in shown.out

    def test_statements_keep_their_brackets(self, adaexplore):
        listed = adaexplore("memory", "list")
        assert "[:, None]" in "".join(listed.out.split("\n"))

    def test_json_goes_out_and_comes_in(self, adaexplore, memory, tmp_path):
        out, back = tmp_path / "memory.json", tmp_path / "back.toml"
        assert adaexplore("memory", "export", memory, "-o", out).code == 0
        assert json.loads(out.read_text())["no-break"]["kind"] == "compile"
        assert adaexplore("memory", "import", out, "-o", back).code == 0
        assert load(back) == load(memory)

    def test_what_is_imported_is_added(self, adaexplore, memory, tmp_path, rules):
        more = tmp_path / "more.toml"
        save(more, [rules["no-continue"], rules["no-break"]])
        assert adaexplore("memory", "import", more, "-o", memory).code == 0
        assert {rule.name for rule in load(memory)} == {*NAMES, "no-continue"}

    def test_the_name_of_an_export_says_how_it_is_written(self, adaexplore, memory, tmp_path):
        assert adaexplore("memory", "export", memory, "-o", tmp_path / "m.md").code == 0
        assert (tmp_path / "m.md").read_text().startswith("# Rules of Triton")
        assert adaexplore("memory", "export", memory, "-o", tmp_path / "m.txt").code == 0
        assert len((tmp_path / "m.txt").read_text().splitlines()) == len(NAMES)
        refused = adaexplore("memory", "export", memory, "-o", tmp_path / "m.doc")
        assert "its name is to end in .json" in refused.complaint


class TestTried:
    def test_statements_count_where_a_rule_bears_them_out(self, adaexplore, file, tmp_path, memory):
        lines = file(
            "rules.txt",
            "There is no tl.log1p.||7\nNever use `break` in a kernel.||5\n"
            "tl.sum has no keyword argument dtype.||4\nThe attribute x.y of line 3 is none.||9\n"
            "tl.frobnicate wants a whizzle.||3\nSeldom.||1\n",
        )
        out = tmp_path / "out.toml"
        took = adaexplore("memory", "import", lines, "--known", memory, "-o", out, *TARGET)
        assert took.code == 0, took
        assert "5 statements: 2 witnessed, 1 stale, 1 unverified, 1 no rule" in took.out
        assert {r.name: (r.support, r.source) for r in load(out)} == {
            "no-break": (18, "import"),
            "no-tl-log1p": (7, "import"),
        }

    def test_only_what_was_never_tried_here(self, adaexplore, memory, rules):
        checked = adaexplore("memory", "check", memory, "--unseen", *TARGET)
        assert checked.code == 0
        assert "0 of 0 rules hold" in checked.out

    @pytest.mark.parametrize("command", ["check", "probe"])
    def test_what_was_tried_before_ctrl_c_is_kept(
        self, adaexplore, monkeypatch, tmp_path, rules, command
    ):
        here = Platform("0.0.1", "sm_90")
        path = tmp_path / "memory.toml"
        known = [rules["no-break"], rules["no-continue"]]
        save(path, known if command == "check" else [])

        def one_and_no_more(tried, new_checker, tell, parallel):
            rule = next(rule for rule in tried if rule.name == "no-break")
            failed, passed = Failed("compile_error", ""), Passed("fp32", 0.0, ESTIMATE)
            tell(Checked(dataclasses.replace(rule, holds=(here,)), failed, passed, True))
            raise KeyboardInterrupt

        monkeypatch.setattr(adapt, command, one_and_no_more)
        words = (
            ("memory", "check", path) if command == "check" else ("adapt", "--probe", "-o", path)
        )
        stopped = adaexplore(*words, *TARGET)
        assert stopped.code == 130
        assert "stopped 1 of" in stopped.out
        kept = {rule.name: rule.holds for rule in load(path)}
        assert kept["no-break"] == (here,)
        assert kept.get("no-continue") == (known[1].holds if command == "check" else None)


class TestInPrompts:
    HEADING = "# Rules, each checked by running it"

    @pytest.fixture
    def prompt(self, adaexplore, problem, tmp_path):
        def prompt(*words):
            run, asks = tmp_path / "run", tmp_path / "asks"
            made = adaexplore("start", problem, *TARGET, "--run", run, *words)
            assert made.code == 0, made
            assert adaexplore("ask", run, "-o", asks).code == 0
            return (asks / "1.1.md").read_text()

        return prompt

    def test_triton_has_the_bundled_rules(self, prompt, tmp_path, rules):
        text = prompt()
        assert self.HEADING in text
        told = [rule for rule in rules.values() if f"- {rule.statement}\n" in text]
        assert 10 <= len(told) <= 60
        with read_run(tmp_path / "run") as directory:
            plan = directory.store.run().plan
        assert plan["memory"] == BUNDLED
        assert len(plan["rules"]) == len(rules) + 1  # and its format

    def test_another_memory_is_copied_into_the_run(self, prompt, adaexplore, memory, tmp_path):
        assert "Blocks lack" not in prompt("--memory", memory)
        memory.unlink()
        assert adaexplore("ask", tmp_path / "run", "-n", 0, "-o", tmp_path / "again").code == 0
        assert self.HEADING in (tmp_path / "again" / "1.1.md").read_text()

    @pytest.mark.parametrize("words", [("--memory", "none"), ("--set", "memory_tokens=0")])
    def test_or_none(self, prompt, words):
        assert self.HEADING not in prompt(*words)

    def test_what_fits_no_problem_is_refused(self, adaexplore, problem, tmp_path):
        run = ("--run", tmp_path / "run", "--device", "cpu")
        cpp = adaexplore("start", problem, *run, "--memory", BUNDLED)
        assert "rules are about Triton, and this problem's kernels are in cpp" in cpp.complaint
        nobody = adaexplore("explore", problem, *run, "--memory", BUNDLED)
        assert "--memory goes with --model" in nobody.complaint
        missing = adaexplore("start", problem, *TARGET, "--run", run[1], "--memory", "none.toml")
        assert "none.toml: No such file" in missing.complaint
