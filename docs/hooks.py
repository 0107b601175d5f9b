"""What the site takes from outside docs/: README.md, examples/README.md and the command line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_ROOT = Path(__file__).parents[1]
_COMMAND_LINE = ("typer", "adaexplore.cli.app", "utils", "docs", "--name", "adaexplore")
_OUTSIDE = re.compile(
    r"\[([^]]+)\]\((?:(?:\.\./)+(?:src|tests|lab|examples)/|problems/|CONTRIBUTING)[^)]*\)"
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not lie in docs/."""
    commands = subprocess.run(
        [sys.executable, "-m", *_COMMAND_LINE], check=True, capture_output=True, text=True
    )
    readme = (_ROOT / "README.md").read_text().replace("](docs/", "](")
    pages = {
        "index.md": readme.replace("](examples/README.md", "](examples.md"),
        "examples.md": (_ROOT / "examples/README.md").read_text().replace("](../docs/", "]("),
        "reference/command-line.md": commands.stdout,
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Keep the text of links to files of the repository that are not in the site."""
    return _OUTSIDE.sub(r"\1", markdown.replace("](../README.md", "](index.md"))
