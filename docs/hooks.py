"""What the site takes from outside docs/: README.md, examples/README.md, `Config`, the commands."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from adaexplore.core.settings.config import Config

_ROOT = Path(__file__).parents[1]
_COMMAND_LINE = ("typer", "adaexplore.cli.app", "utils", "docs", "--name", "adaexplore")
_OUTSIDE = re.compile(
    r"\[([^]]+)\]\((?:(?:\.\./)+(?:src|tests|lab|examples)/|problems/|training/"
    r"|models/|bf16|\w+\.(?:py|toml)|CONTRIBUTING|CHANGE)"
    r"[^)]*\)"
)
_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
_TYPES = {"integer": "whole number", "number": "number", "boolean": "true, false", "null": "none"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not lie in docs/."""
    commands = subprocess.run(
        [sys.executable, "-m", *_COMMAND_LINE], check=True, capture_output=True, text=True
    )
    readme = (_ROOT / "README.md").read_text().replace("](docs/", "](")
    pages = {
        "index.md": readme.replace("](examples/README.md", "](examples.md"),
        "examples.md": (_ROOT / "examples/README.md").read_text().replace("](../docs/", "]("),
        "reference/command-line.md": re.sub(r":<(\w+)>", r":&lt;\1&gt;", commands.stdout),
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in the fields of `Config`; keep only the text of links to files outside the site."""
    markdown = markdown.replace("](../README.md", "](index.md")
    return _OUTSIDE.sub(r"\1", markdown).replace("<!-- Config -->", "\n".join(_fields()))


def _fields() -> Iterator[str]:
    """The fields of `Config` as Markdown: one table for each group, in order."""
    group = ""
    for name, field in Config.model_json_schema()["properties"].items():
        if field["group"] != group:
            group = field["group"]
            yield f"\n## {group.capitalize()}\n"
            yield "| field | command line | values | default | meaning |\n|---|---|---|---|---|"
        option = f"`--{name.replace('_', '-')}`" if field["option"] else f"`--set {name}=`"
        default = field.get("default")
        shown = f"`{default}`" if default not in (None, "", []) else ""
        meaning = escape(field["description"])
        yield f"| `{name}` | {option} | {_values(field)} | {shown} | {meaning} |"


def _values(schema: Mapping[str, Any]) -> str:
    """The values that a JSON schema allows, in words."""
    if "anyOf" in schema:
        return ", ".join(_values(part) for part in schema["anyOf"] if part.get("type") != "null")
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    bounds = [f"{sign} {schema[key]:.12g}" for key, sign in _BOUNDS.items() if key in schema]
    return ", ".join([_TYPES.get(schema.get("type", ""), "text"), *bounds])
