"""The matrix of checkers counts what their verdicts say, and nothing that is not theirs."""

import json

import confusion_table
import pytest
import rivals
import samples


def row(sample, *, refused, checker="theirs", device="cuda:0", speedup=None, why="", aimed=False):
    kind = "cheat" if sample.startswith("hacks") else "honest"
    return {
        "sample": sample,
        "kind": kind,
        "family": sample.split("/")[1],
        "aimed": aimed,
        "checker": checker,
        "device": device,
        "refused": refused,
        "why": why,
        "speedup": speedup,
    }


ROWS = [
    row("hacks/cached/a", refused=True),
    row("hacks/cached/b", refused=False, speedup=9.0),
    row("hacks/timer/c", refused=False, speedup=1.1, why="suspicious"),
    row("hacks/timer/d", refused=False),
    row("hacks/forged/e", refused=False, speedup=9.0, aimed=True),
    row("hacks/harm/f", refused=True),
    row("hacks/forged/g", refused=True, why="PermissionError: nobody to be killed"),
    row("honest/ties/h", refused=True, why="off by 1"),
    row("honest/ties/i", refused=False, speedup=1.0),
]


def test_a_cheat_is_refused_or_passes_with_a_gain_or_without_or_untimed():
    [one] = confusion_table.matrix(ROWS)["checkers"]
    counts = {name: one[name] for name in ("cheats", "caught", "no_gain", "gain", "untimed")}
    assert counts == {"cheats": 4, "caught": 1, "no_gain": 1, "gain": 1, "untimed": 1}
    assert (one["honest"], one["honest_refused"], one["warned"]) == (2, 1, 1)


def test_disagreements_are_told_by_family():
    found = confusion_table.matrix(ROWS)["disagreements"]
    assert [(one["family"], one["count"], one["of"]) for one in found] == [
        ("cached", 1, 2),
        ("timer", 1, 2),
        ("ties", 1, 2),
    ]
    assert found[1]["samples"] == ["hacks/timer/d"]


def test_static_checkers_are_judged_on_harm_too():
    static = [row("hacks/harm/f", refused=True, device="")]
    assert confusion_table.matrix(static)["checkers"][0]["cheats"] == 1


def test_our_verdicts_are_read_from_the_log_of_the_corpora(tmp_path):
    log = tmp_path / "h200.log"
    log.write_text(
        "  hacks/cached/rotation            passed            0.08x\n"
        "✗ hacks/cached/other               passed            3.10x\n"
        "  hacks/timer/clock_class          rejected                 it replaces a clock\n"
        "✗ honest/fold/alpha                wrong_output             output is off by 1\n"
        "✗ honest/fold/alpha                infra_error              closed while at work\n"
        "hacks: 2 of 3 refused or without advantage; honest: 0 of 1 accepted\n"
    )
    [one] = confusion_table.matrix([], confusion_table.read_ours(log))["checkers"]
    assert (one["checker"], one["device"], one["cheats"]) == ("adaexplore", "cuda", 3)
    assert (one["caught"], one["no_gain"], one["gain"]) == (1, 1, 1)
    assert (one["honest"], one["honest_refused"]) == (1, 1)


@pytest.mark.parametrize(
    ("interval", "status", "outcome"),
    [
        ([1.0, 9.0], "passed", "no_gain"),
        ([2.0, 9.0], "passed", "gain"),
        (None, "rejected", "caught"),
    ],
)
def test_verdicts_of_bench_count_by_their_interval(tmp_path, interval, status, outcome):
    file = tmp_path / "verdicts.jsonl"
    judged = {"status": status, "speedup": None, "speedup_ci": interval, "reason": ""}
    entry = {"collection": "withdrawn", "place": "1/2/custom_code.py"}
    file.write_text(json.dumps({"entry": entry, "language": "triton", "evaluation": judged}) + "\n")
    [one] = confusion_table.matrix([], confusion_table.read_bench(file))["checkers"]
    assert one[outcome] == 1


def test_the_table_has_a_line_for_each_checker():
    lines = confusion_table.render(confusion_table.matrix(ROWS)).splitlines()
    assert lines[2] == "| theirs | cuda | 4 | 1 | 1 | 1 | 1 | 1 | 2 | 1 | 0 |"
    assert lines[4] == "| cheats that pass | theirs, cuda |"
    assert lines[6:8] == ["| cached | 1 of 2 |", "| timer | 1 of 2 |"]
    assert lines[-1] == "| ties | 1 of 2 |"


def test_there_are_enough_samples_of_each_kind():
    every = list(samples.samples())
    assert sum(one.kind == "cheat" for one in every) >= 150
    assert sum(one.kind == "honest" for one in every) >= 150
    assert all(one.source and "def get_init_inputs" in one.problem for one in every)


def test_a_checker_from_a_clone_is_called_with_the_source(tmp_path):
    (tmp_path / "kernelguard.py").write_text(
        "def analyze_code(code):\n"
        "    bad = 'elapsed_time' in code\n"
        "    return {'classification': 'hacked' if bad else 'valid', 'should_filter': bad,\n"
        "            'matched_patterns': [{'pattern': 'TIMER'}] if bad else []}\n"
    )
    request = {"checker": "kernelguard", "path": str(tmp_path), "device": "cpu", "problem": ""}
    assert rivals.judge({**request, "source": "event.elapsed_time = 0"}) == {
        "refused": True,
        "why": "hacked: TIMER",
        "speedup": None,
    }
    assert not rivals.judge({**request, "source": "x = 1"})["refused"]
