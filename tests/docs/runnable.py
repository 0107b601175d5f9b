"""Markdown pages as programs: the code blocks of a page, run in order in one fresh process.

    ```python                     runs; a traceback has the line numbers of the page
    ```text title="Output"        is the output of the python block before it
    ```console                    `$ ` begins a bash command, other lines are its output
    ```python title="mlp.py"      is written to that file, in any language

In expected output `...` stands for any text. Blocks in other languages are not run.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

_MARK = re.compile(r"^@@(\d+)@@\n", re.MULTILINE)
_TITLE = re.compile(r'title="([^"]+)"')
_EAGER = Path(__file__).parents[1] / "eager"
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; `line` is the number of its opening fence in the page."""

    language: str
    title: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = []
    for token in MarkdownIt().parse(page):
        if token.type == "fence" and token.map:
            language, _, rest = token.info.partition(" ")
            title = _TITLE.search(rest)
            found.append(Block(language, title[1] if title else "", token.content, token.map[0]))
    return found


def program(page: str) -> tuple[str, dict[int, str]]:
    """A page as a Python script, and the expected output after each numbered mark."""
    lines = [""] * (page.count("\n") + 1)
    expected: dict[int, str] = {}
    python = 0
    for block in blocks(page):
        if block.title == "Output":
            expected[python] = block.text
        elif block.title:
            write = f"__import__('pathlib').Path({block.title!r}).write_text({block.text!r})"
            lines[block.line] = write
        elif block.language == "python":
            python = block.line
            lines[block.line] = f"print('@@{block.line}@@')"
            code = block.text.splitlines()
            lines[block.line + 1 : block.line + 1 + len(code)] = code
        elif block.language == "console":
            bash = _bash(block, expected)
            run = f"__import__('subprocess').run(['bash', '-ec', {bash!r}], check=True)"
            lines[block.line] = run
    return "\n".join(lines), expected


def _bash(block: Block, expected: dict[int, str]) -> str:
    """The commands of a console block as a bash script, with a mark before each."""
    script = []
    mark = block.line
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        if line.startswith("$ "):
            mark = number
            script += [f"echo @@{mark}@@", line[2:]]
        elif line.startswith("> "):
            script.append(line[2:])
        else:
            expected[mark] = f"{expected.get(mark, '')}{line}\n"
    return "\n".join(script)


def run(page: Path, folder: Path, timeout_s: float = 540.0) -> list[str]:
    """Run a page in an empty folder; return what differs from what it shows.

    Raises `AssertionError` with the output where a block fails.
    """
    script, expected = program(page.read_text())
    path = folder / f"{page.stem}.page.py"
    path.write_text(script)
    search_path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-u", path.name],
        cwd=folder,
        env={**os.environ, "PATH": search_path, "COLUMNS": "100", "PYTHONPATH": str(_EAGER)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    _, *pieces = _MARK.split(done.stdout)
    printed = dict(zip(map(int, pieces[::2]), pieces[1::2], strict=True))
    checker = doctest.OutputChecker()
    return [
        f"{page.name}, line {line + 1}: shows\n{want}\nand printed\n{printed[line]}"
        for line, want in expected.items()
        if not checker.check_output(want, printed[line], _FLAGS)
    ]
