"""`adaexplore check` tells whether a package still keeps what it promised."""

import json
import os
import shutil
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from shipped_blocks import no_compiler

from adaexplore.cli import main
from adaexplore.sandbox.lock import holders
from adaexplore.ship.check import Checked
from adaexplore.ship.trial import FailedTrialError, Trial, WorkloadTrial, run_trial

THEN = Trial("2.9.0", "3.5.0", "9.0", (WorkloadTrial("8x8", 1e-7, 10.0, 20.0, 15.0),))


def today(**changes):
    return replace(THEN, workloads=(replace(THEN.workloads[0], **changes),))


@pytest.mark.parametrize(
    ("now", "failure"),
    [
        (today(), ""),
        (today(kernel_us=11.0), ""),
        (today(kernel_us=11.2), "speedup 1.34x, shipped with 1.50x, tolerance 10%"),
        (today(compile_us=13.0), "speedup 1.30x, shipped with 1.50x, tolerance 10%"),
        (today(error=2e-4), "error 2.0e-04, allowed 1.0e-04"),
        (today(error=float("nan")), "error nan, allowed 1.0e-04"),
        (None, "no compiler"),
    ],
)
def test_a_claim_fails_beyond_its_tolerance(now, failure):
    checked = Checked("mine", 1e-4, 0.1, THEN, now, "" if now else "no compiler")
    assert checked.is_good == (not failure)
    assert [f.failure for f in checked.findings if f.failure] == [failure] * bool(failure)
    assert failure in str(checked)
    assert len(str(checked).splitlines()) == 1


@pytest.fixture
def check(monkeypatch, capsys):
    """Run the command; return its exit code, and what it printed."""

    def check(*args):
        monkeypatch.setattr(sys, "argv", ["adaexplore", "check", *map(str, args)])
        with no_compiler(), pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        return end.value.code, printed.out + printed.err

    return check


def test_a_good_package(package, tmp_path, check):
    file = tmp_path / "junit.xml"
    code, text = check(package, "--tolerance", 1, "--junit", file)
    assert (code, text.startswith("block_kernel: good; error")) == (0, True), text
    suite = ElementTree.parse(file).getroot()
    assert suite.attrib == {"name": "block_kernel", "tests": "4", "failures": "0"}
    assert [case.get("name") for case in suite][:2] == ["3x16 is right", "3x16 is fast"]


def test_a_kernel_that_became_wrong_and_slow(package, tmp_path, check):
    folder = tmp_path / "package"
    shutil.copytree(package, folder)
    winner = folder / "src/block_kernel/winner.py"
    winner.write_text(winner.read_text().replace("* self.scale", "* 1.01"))
    verdicts = json.loads((folder / "verdicts.json").read_text())
    for each in verdicts["trial"]["workloads"]:
        each["kernel_us"] = 1e-3
    (folder / "verdicts.json").write_text(json.dumps(verdicts))
    file = tmp_path / "junit.xml"
    code, text = check(folder, "--junit", file)
    assert code == 1
    assert text.startswith("block_kernel: FAILED; 3x16: error ")
    assert "allowed 1.0e-04; 3x16: speedup" in text
    cases = list(ElementTree.parse(file).getroot())
    assert [len(case) for case in cases] == [1, 1, 1, 1]


def test_a_kernel_that_no_longer_builds(package, check, monkeypatch):
    def run_trial(folder, name, limit_s):
        assert os.getpid() in holders("cpu")  # others of ours time nothing meanwhile
        raise FailedTrialError("no such header")

    monkeypatch.setattr("adaexplore.ship.check.run_trial", run_trial)
    code, text = check(package)
    assert code == 1
    assert text == ("block_kernel: FAILED; 3x16: no such header; 1x16: no such header\n")


def test_a_kernel_that_hangs_is_no_result_and_leaves_no_process(tmp_path, is_running, eventually):
    home = tmp_path / "src" / "hangs"
    home.mkdir(parents=True)
    (home / "__init__.py").touch()
    (home / "verify.py").write_text(
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open('pids', 'w').write(f'{os.getpid()} {child.pid}')\n"
        "time.sleep(600)\n"
    )
    with pytest.raises(FailedTrialError, match=r"^it gave no result in 1 s$"):
        run_trial(tmp_path, "hangs", limit_s=1.0)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert eventually(lambda: not any(map(is_running, pids)))


def test_bad_orders_of_a_check_are_one_line(package, tmp_path, check):
    code, text = check(tmp_path)
    assert (code, text) == (2, f"adaexplore: {tmp_path}: no package of adaexplore ship\n")
    nowhere = tmp_path / "none" / "junit.xml"
    code, text = check(package, "--junit", nowhere)
    assert code == 2
    assert text == f"adaexplore: cannot write {nowhere}: there is no folder {nowhere.parent}\n"
    folder = tmp_path / "package"
    shutil.copytree(package, folder)
    spec = folder / "src/block_kernel/spec.json"
    spec.write_text(
        spec.read_text()
        .replace('"device": "cpu"', '"device": "cuda"')
        .replace('"gpu": ""', '"gpu": "1.0"')
    )
    code, text = check(folder)
    assert code == 2
    assert "needs a GPU of compute capability 1.0, here is" in text


@pytest.mark.parametrize("name", ["verdicts.json", "src/block_kernel/spec.json"])
@pytest.mark.parametrize("content", [b"{", b"{}", b"[]", b"\xff"])
def test_a_damaged_package_is_refused(package, tmp_path, check, name, content):
    folder = tmp_path / "package"
    shutil.copytree(package, folder)
    (folder / name).write_bytes(content)
    code, text = check(folder)
    assert (code, text.startswith(f"adaexplore: {folder / name} is damaged; ")) == (2, True), text
    assert text.count("\n") == 1
