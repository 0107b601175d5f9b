import subprocess
import sys

import pytest

from adaexplore.core.settings.config import Config
from adaexplore.core.settings.policies import PARAMETERS
from adaexplore.core.settings.presets import PRESETS
from adaexplore.core.version import __version__

COMMANDS = {
    "explore": ["PROBLEM", "--steps", "--proposer", "--language", "--device", "--run", "--set"],
    "resume": ["RUN", "--steps"],
    "evaluate": ["PROBLEM", "CANDIDATE", "--device", "--precision", "--json"],
    "show": ["RUN", "--cost", "--json"],
    "report": ["RUN", "--output"],
    "export": ["RUN", "--output", "--flashinfer", "--sol", "--dataset"],
    "compare": ["RUN", "--by", "--at", "--html"],
    "settings": [],
    "bench": ["NAME", "--data", "--answers", "--sample", "--resume", "--device"],
    "campaign": ["PROBLEMS", "--allocation", "--budget", "--json"],
    "ship": ["RUN", "--output", "--name", "--license", "--hub"],
    "check": ["PACKAGE", "--tolerance", "--junit"],
    "ask": ["RUN", "--count", "--steps"],
    "tell": ["RUN", "REPLIES"],
    "tune": ["RUN", "--variants", "--parallel"],
    "cache": ["size", "clear"],
    "jobs": ["list", "follow", "fetch", "continue", "cancel"],
}
LOADED = """
import sys
sys.argv = ["adaexplore", *sys.argv[1:]]
from adaexplore.cli import main
try:
    main()
except SystemExit as end:
    code = end.code
heavy = [name for name in ("torch", "triton", "numpy") if name in sys.modules]
print("loaded:", *heavy)
sys.exit(code)
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(adaexplore, command):
    result = adaexplore(command, "--help")
    assert result.code == 0
    assert all(word in result.out for word in COMMANDS[command])


def test_the_list_of_commands_is_complete(adaexplore):
    result = adaexplore("--help")
    assert result.code == 0
    assert all(command in result.out for command in COMMANDS)


def test_the_version(adaexplore):
    result = adaexplore("--version")
    assert (result.code, result.out) == (0, f"adaexplore {__version__}\n")


def test_help_of_the_mode_says_what_modules_of_libraries_are_in(adaexplore):
    text = " ".join(adaexplore("explore", "--help").out.split())
    assert "training mode for most modules of libraries" in text


def test_tables_in_a_pipe_have_a_line_for_each_row(adaexplore):
    lines = adaexplore("settings").out.splitlines()
    parameters = [name for own in PARAMETERS.values() for name in own]
    assert len(lines) == 3 + len(Config.model_fields) + len(parameters) + len(PRESETS)
    assert any(line.split()[0] == "require_custom" and "Needs a GPU" in line for line in lines)


def test_presets_are_listed_with_their_settings(adaexplore):
    lines = adaexplore("settings").out.splitlines()
    [line] = [line for line in lines if line.split()[0] == "adaexplore-l3"]
    assert "expand_ratio=0.5" in line


def test_parameters_of_policies_are_listed_with_their_defaults(adaexplore):
    lines = adaexplore("settings").out.splitlines()
    [line] = [line for line in lines if line.split()[0] == "policy=beam:width"]
    assert line.split() == ["policy=beam:width", "2", "kernels", "that", "are", "kept"]


def test_settings_are_listed_with_their_defaults(adaexplore):
    result = adaexplore("settings")
    assert result.code == 0
    assert "timeout_s" in result.out
    assert "180.0" in result.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no-such-command"], "no-such-command"),
        (["explore"], "--example"),
        (["explore", "x.py", "--steps", "0"], "--steps"),
        (["explore", "x.py", "--precision", "fp8"], "--precision"),
        (["explore", "x.py", "--nonsense"], "--nonsense"),
    ],
)
def test_a_misused_command_line_is_bad_input(adaexplore, words, said):
    result = adaexplore(*words)
    assert result.code == 2
    assert said in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["explore", "--help"],
        ["settings"],
        ["evaluate", "no.py", "such.py"],
        ["model", "no.py:such"],
        ["ship", "nosuch", "-o", "package"],
        ["check", "nosuch"],
    ],
    ids=" ".join,
)
def test_nothing_heavy_is_loaded_for_it(words):
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "loaded:"


def test_importing_the_package_loads_nothing_heavy():
    script = (
        "import sys, adaexplore\n"
        "assert adaexplore.Problem and adaexplore.__version__\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'triton', 'sqlalchemy', 'rich')))"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0
