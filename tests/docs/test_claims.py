"""What the pages name exists: files, commands, options, settings, figures."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from markdown_it import MarkdownIt

from adaexplore.cli.app import app
from adaexplore.core.settings.config import Config
from adaexplore_lab.cli import app as lab

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), ROOT / "examples/README.md", *ROOT.glob("docs/**/*.md")])
COMMANDS = {
    "adaexplore": typer.main.get_command(app),
    "adaexplore-lab": typer.main.get_command(lab),
}
_PLACES = (ROOT, ROOT / "src/adaexplore", ROOT / "lab", ROOT / "lab/src/adaexplore_lab")
_NOT_WORDS = set("<>[]{}…|")

page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@page
def test_links_lead_to_files(page):
    links = [str(t.attrs.get("href") or t.attrs.get("src") or "") for t in _tokens(page)]
    files = [link.partition("#")[0] for link in links if not link.startswith("http")]
    missing = [file for file in files if not (page.parent / file).exists()]
    assert set(missing) <= {"reference/command-line.md"}  # made with the site


@page
def test_python_files_that_are_named_exist(page):
    if page.name == "CHANGELOG.md":
        return
    named = re.findall(r"`([\w./-]*/[\w./-]+\.(?:py|toml|txt|j2))`", page.read_text())
    own = [name for name in named if not name.startswith(("/", "runs/", "build/"))]
    missing = [name for name in own if not any((place / name).exists() for place in _PLACES)]
    assert missing == []


@page
def test_tests_that_are_named_exist(page, names_of_tests):
    assert set(re.findall(r"`(test_\w+)`", page.read_text())) <= names_of_tests


@pytest.fixture(scope="module")
def names_of_tests():
    files = (ROOT / "tests").rglob("*.py")
    return {name for file in files for name in re.findall(r"def (test_\w+)", file.read_text())}


@page
def test_make_targets_that_are_shown_exist(page):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    code = "\n".join(t.content for t in _tokens(page) if t.type in {"code_inline", "fence"})
    assert set(re.findall(r"^make ([a-z-]+)", code, re.MULTILINE)) <= {*targets}


@page
def test_commands_that_are_shown_exist(page):
    if page.name == "CHANGELOG.md":
        return
    assert [problem for line in _command_lines(page) for problem in _problems(line)] == []


def _command_lines(page: Path) -> Iterator[str]:
    for token in _tokens(page):
        if token.type == "code_inline":
            lines = [token.content]
        elif token.type == "fence" and "text" not in token.info and token.info != "python":
            lines = token.content.replace("\\\n", " ").splitlines()
        else:
            continue
        for line in lines:
            for part in line.split(" ; "):
                if re.match(r"(\$ )?(\S+/)?adaexplore(-lab)? ", part):
                    yield part.removeprefix("$ ")


def _tokens(page: Path):
    for token in MarkdownIt().enable("table").parse(page.read_text()):
        yield token
        yield from token.children or ()


def _problems(line: str) -> Iterator[str]:
    """The commands, options and settings of a line that do not exist."""
    program, *words = shlex.split(line, comments=True)
    command = COMMANDS[program.rpartition("/")[2]]
    words = words[: words.index("&&")] if "&&" in words else words
    while words and hasattr(command, "commands"):
        if command.invoke_without_command and words[0].startswith("--"):
            break  # the group's own options, as `serve` has them
        word = words.pop(0)
        if word in {"--help", "--version"}:
            return
        if word not in command.commands:
            yield f"{line}: no command {word}"
            return
        command = command.commands[word]
    context = command.make_context(program, [], resilient_parsing=True)
    params = command.get_params(context)
    options = {name for param in params for name in param.opts + param.secondary_opts}
    for before, word in zip(["", *words], words, strict=False):
        name = word.partition("=")[0]
        if re.match(r"--?[a-z]", name) and name not in options:
            yield f"{line}: no option {name}"
        if before == "--set" and name not in Config.model_fields and not _NOT_WORDS & set(name):
            yield f"{line}: no setting {name}"


def test_headline_figures_of_the_readme_are_in_the_results():
    """Each speedup in the README stands in docs/results/README.md or in a raw file beside it."""
    readme = (ROOT / "README.md").read_text()
    results = (ROOT / "docs/results/README.md").read_text()
    figures = set(re.findall(r"\b\d+\.\d+x", readme))
    assert sorted(figure for figure in figures if figure not in results) == []
