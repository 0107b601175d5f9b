"""The memory commands: rules as files, checked, and in prompts."""

import dataclasses
from pathlib import Path

import pytest

from adaexplore.cli.learning import checking
from adaexplore.core.rule import Platform, unchecked_rule
from adaexplore.core.verdict.evaluation import Estimate, Failed, Passed
from adaexplore.memory.check import CheckedRule
from adaexplore.memory.files import BUNDLED, load_memory, memory_path, save_memory
from adaexplore.store import read_run

ROOT = Path(__file__).parents[3]
ESTIMATE = Estimate(1.0, "memory", "sm_90")
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


class TestFiles:
    def test_the_bundled_one_is_there_without_a_file(self, adaexplore):
        listed = adaexplore("memory", "list")
        assert "no-break" in listed.out
        assert f"{len(load_memory(memory_path(BUNDLED)))} rules" in listed.out
        shown = adaexplore("memory", "show", "no-element-of-a-block")
        assert "holds on: Triton 3.6.0 (sm_90)" in shown.out
        assert "tl.store" in shown.out

    def test_statements_keep_their_brackets(self, adaexplore):
        listed = adaexplore("memory", "list")
        assert "[:, None]" in "".join(listed.out.split("\n"))

    def test_a_merge_on_a_full_disk_leaves_the_older_one(self, adaexplore, memory, fill_disk):
        before = memory.read_text()
        fill_disk()
        line = adaexplore("memory", "merge", memory, "-o", memory).complaint
        assert line.endswith(f"cannot write {memory}: No space left on device")
        assert memory.read_text() == before
        assert list(memory.parent.iterdir()) == [memory]

    def test_unchecked_rules_are_marked(self, adaexplore, tmp_path):
        memory = tmp_path / "seen.toml"
        rule = unchecked_rule("seen-0001", "You cannot do so.", support=7, source="failure")
        save_memory(memory, [rule])
        listed = adaexplore("memory", "list", memory).out
        assert listed.count("unchecked") == 2
        shown = adaexplore("memory", "show", "seen-0001", memory).out
        assert "unchecked: nobody tested it; seen 7 times" in shown
        checked = adaexplore("memory", "check", memory, *TARGET)
        assert "1 unchecked rules have no programs to run" in checked.out


@pytest.mark.slow
def test_a_memory_of_another_version_follows_the_names_of_this_one(adaexplore, tmp_path):
    """On Triton 3.9: the memory was learned on 3.6."""
    learned = {
        rule.name: rule
        for rule in load_memory(ROOT / "docs/results/gluon-learned.toml")
        if rule.name.startswith("no-")
    }
    path = tmp_path / "mine.toml"
    save_memory(path, learned.values())
    checked = adaexplore("memory", "check", path, *TARGET)
    assert "found: async-copy-global-to-shared-is-async-load" in checked.out
    assert "more under the names of this version" in checked.out
    now = {rule.name: rule for rule in load_memory(path)}
    here = Platform("3.9.0", "sm_90")
    assert now["async-copy-global-to-shared-is-async-load"].holds == (here,)
    assert now["no-static-range-name-reuse-91ed-3-9-0"].holds == (here,)
    assert now["no-work-over-register-wgmma-8638"].gone == (here,)
    again = adaexplore("memory", "check", path, *TARGET)
    assert "found" not in again.out
    assert "the remedy fails" not in again.out  # its version for 3.9 is tried, and holds
    assert len(load_memory(path)) == len(now)
    adaexplore("memory", "merge", path, "-o", path)
    assert {rule.name: rule.holds for rule in load_memory(path)} == {
        name: rule.holds for name, rule in now.items()
    }


class TestTried:
    def test_only_what_was_never_tried_here(self, adaexplore, memory, rules):
        checked = adaexplore("memory", "check", memory, "--unseen", *TARGET)
        assert checked.code == 0
        assert "0 of 0 rules hold" in checked.out

    def test_results_before_ctrl_c_are_kept(self, adaexplore, monkeypatch, tmp_path, rules):
        here = Platform("0.0.1", "sm_90")
        path = tmp_path / "memory.toml"
        known = [rules["no-break"], rules["no-continue"]]
        save_memory(path, known)

        def one_and_no_more(tried, machine, report, *, parallel):
            rule = next(rule for rule in tried if rule.name == "no-break")
            failed, passed = Failed("compile_error", ""), Passed("fp32", 0.0, ESTIMATE)
            report(CheckedRule(dataclasses.replace(rule, holds=(here,)), failed, passed, True))
            raise KeyboardInterrupt

        monkeypatch.setattr(checking, "check_rules", one_and_no_more)
        stopped = adaexplore("memory", "check", path, *TARGET)
        assert stopped.code == 130
        assert "stopped 1 of" in stopped.out
        kept = {rule.name: rule.holds for rule in load_memory(path)}
        assert kept == {"no-break": (here,), "no-continue": known[1].holds}


LINES = """There is no triton.language.log1p.||9.0
Never write `break` in a kernel.||2.0
You cannot have an else at line 41.||30.0
tl.frobnicate wants a whizzle.||4.0
"""


class TestStatements:
    """Lines `statement||count`, as the published search has them."""

    @pytest.fixture
    def lines(self, file):
        return file("general_memory.txt", LINES)

    def test_they_are_rules_that_nobody_tested(self, lines):
        rules = load_memory(lines)
        assert [(rule.support, rule.is_checked) for rule in rules] == [
            (9, False),
            (2, False),
            (30, False),
            (4, False),
        ]
        assert rules[0].statement == "There is no triton.language.log1p."

    def test_checked_they_become_the_rules_that_bear_them_out(self, adaexplore, lines, monkeypatch):
        tried = []

        def nothing_new(rules, machine, report, *, parallel):
            tried.extend(rules)

        monkeypatch.setattr(checking, "check_rules", nothing_new)
        checked = adaexplore("memory", "check", lines, *TARGET)
        assert checked.code == 0, checked
        assert "4 statements: 2 witnessed, 0 stale, 1 unverified, 1 no rule" in checked.out
        assert tried == []  # both were seen to hold on this version
        rules = load_memory(lines.with_suffix(".toml"))
        assert {rule.name: rule.support for rule in rules}.keys() == {"no-tl-log1p", "no-break"}
        assert all(rule.witness and rule.source == "import" for rule in rules)
        assert lines.read_text() == LINES

    def test_what_forbids_code_that_works_is_borne_out_by_no_rule(
        self, adaexplore, file, monkeypatch
    ):
        tried = []

        def nothing_new(rules, machine, report, *, parallel):
            tried.extend(rule.name for rule in rules)

        monkeypatch.setattr(checking, "check_rules", nothing_new)
        false = [
            "You cannot call `tl.arange(0, BLOCK)` inside a kernel.||79",
            "`tl.load` with a mask cannot be called without supplying an `other` argument.||12",
        ]
        lines = file("false.txt", "\n".join(false) + "\n")
        checked = adaexplore("memory", "check", lines, *TARGET)
        assert "2 statements: 0 witnessed, 0 stale, 2 unverified, 0 no rule" in checked.out
        assert tried == ["belief-arange-of-a-block", "belief-load-needs-other"]
        assert not lines.with_suffix(".toml").exists()

    def test_lines_that_nothing_bears_out_make_no_memory(self, adaexplore, file):
        lines = file("lines.txt", "tl.frobnicate wants a whizzle.||4.0\n")
        assert adaexplore("memory", "check", lines, *TARGET).code == 1
        assert not lines.with_suffix(".toml").exists()

    def test_a_line_that_is_none_is_named(self, adaexplore, file):
        lines = file("lines.txt", "tl.frobnicate wants a whizzle.||4.0\nno count\n")
        said = adaexplore("memory", "list", lines).complaint
        assert "lines.txt, line 2: write it as statement||count" in said


class TestInPrompts:
    HEADING = "# Rules, each verified by a run"

    @pytest.fixture
    def prompt(self, adaexplore, problem, tmp_path):
        def prompt(*words):
            run, asks = tmp_path / "run", tmp_path / "asks"
            made = adaexplore(
                "explore", problem, "--proposer", "manual", *TARGET, "--run", run, *words
            )
            assert made.code == 0, made
            assert adaexplore("ask", run, "-o", asks).code == 0
            return (asks / "1.1.md").read_text()

        return prompt

    def test_triton_has_the_bundled_rules(self, prompt, tmp_path, rules):
        text = prompt()
        assert self.HEADING in text
        told = [rule for rule in rules.values() if f"- {rule.statement}\n" in text]
        assert 3 <= len(told) <= 10
        with read_run(tmp_path / "run") as directory:
            run = directory.store.run()
        assert run.config.memory == BUNDLED
        assert len(run.plan["rules"]) == len(rules) + 1  # and its format

    def test_another_memory_is_copied_into_the_run(self, prompt, adaexplore, memory, tmp_path):
        assert "Blocks lack" not in prompt("--memory", memory)
        memory.unlink()
        assert adaexplore("ask", tmp_path / "run", "-n", 0, "-o", tmp_path / "again").code == 0
        assert self.HEADING in (tmp_path / "again" / "1.1.md").read_text()

    @pytest.mark.parametrize("words", [("--memory", "none"), ("--set", "memory_tokens=0")])
    def test_or_none(self, prompt, words):
        assert self.HEADING not in prompt(*words)

    def test_statements_go_in_by_their_counts_and_are_marked(self, prompt, file):
        lines = file("general_memory.txt", LINES)
        text = prompt("--memory", lines, "--set", "memory_threshold=3")
        told = [line for line in LINES.splitlines() if f"- {line.partition('||')[0]}" in text]
        assert len(told) == 3
        assert text.count("(unchecked)") == 3
        assert "Never write" not in text

    def test_statements_that_nothing_chooses_are_refused(self, adaexplore, problem, file, tmp_path):
        lines, run = file("general_memory.txt", LINES), tmp_path / "run"
        words = ["explore", problem, "--proposer", "manual", *TARGET, "--run", run]
        refused = adaexplore(*words, "--memory", lines)
        assert "nobody tested its rules" in refused.complaint
        assert "--set memory_threshold=3" in refused.complaint
        assert not run.exists()

    def test_what_fits_no_problem_is_refused(self, adaexplore, problem, tmp_path):
        run = ("--run", tmp_path / "run", "--device", "cpu")
        cpp = adaexplore("explore", problem, "--proposer", "manual", *run, "--memory", BUNDLED)
        assert "its rules are about Triton, and this problem's kernels are in cpp" in cpp.complaint
        nobody = adaexplore("explore", problem, *run, "--memory", BUNDLED)
        assert "--memory goes with --model" in nobody.complaint
        missing = adaexplore(
            "explore",
            problem,
            "--proposer",
            "manual",
            *TARGET,
            "--run",
            run[1],
            "--memory",
            "none.toml",
        )
        assert "none.toml: No such file" in missing.complaint
