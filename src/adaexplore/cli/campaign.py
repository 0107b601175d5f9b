"""The command for many problems: campaign."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from adaexplore.cli.campaign_results import course_of, show_results, summarized
from adaexplore.cli.campaign_view import CampaignView
from adaexplore.core.errors import AdaExploreError, BadInputError, InfrastructureError
from adaexplore.run.campaign import Campaign, Rules
from adaexplore.run.campaign_file import (
    CampaignFile,
    Entry,
    Options,
    ProblemTable,
    Shared,
    entries,
    read_campaign_file,
)
from adaexplore.run.courses import Common, Servers
from adaexplore.run.proposers import Plan, check, clock, open_clients, with_templates
from adaexplore.run.session import INTERRUPTED, device_of
from adaexplore.store import read_run
from adaexplore.store.campaign import (
    create_campaign,
    hold_campaign,
    is_campaign,
    read_manifest,
    write_manifest,
)

DEFAULT_STEPS = 20
_PAGE_NAME = "index.html"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says beside the problems; empty or None where it does not."""

    options: Options
    shared: dict[str, Any]
    run: Path | None
    json: Path | None


def campaign(what: Sequence[Path], asked: Asked) -> int:
    """Begins a campaign, or goes on with one; the exit code."""
    if any(is_campaign(path) for path in what):
        return _resume(what, asked)
    return _begin(what, asked)


def _begin(what: Sequence[Path], asked: Asked) -> int:
    file, folder = _file_of(what)
    shared = _shared(file, asked.shared)
    listed = entries(file, folder, asked.options)
    if not shared.budget:
        listed = [replace(entry, steps=entry.steps or DEFAULT_STEPS) for entry in listed]
    for name in {device for entry in listed for device in entry.devices}:
        device_of(name)
    path = asked.run or Path("runs") / f"campaign-{time.strftime('%Y%m%d-%H%M%S')}"
    check(_plan(shared, listed))
    words = ["adaexplore", "campaign", *map(str, what), *_words(asked)]
    manifest = {
        "command": shlex.join(words),
        "created_at": time.time(),
        "shared": shared.model_dump(),
        "entries": [entry.to_json() for entry in listed],
    }
    create_campaign(path, manifest)
    return _run(path, shared, listed, shlex.join(words), asked.json)


def _resume(what: Sequence[Path], asked: Asked) -> int:
    [path, *others] = what
    fixed = [name for name, value in asked.options if value not in (None, {}) and name != "steps"]
    fixed += [name for name in asked.shared if name not in ("budget", "parallel", "allocation")]
    if others or asked.run or fixed:
        raise BadInputError(
            f"{path} is a campaign that goes on as it began; besides --budget, --steps, "
            f"--parallel, --allocation and --json it takes nothing{_named(fixed)}"
        )
    manifest = read_manifest(path)
    shared = _shared(CampaignFile(**manifest["shared"]), asked.shared)
    listed = [Entry.from_json(data) for data in manifest["entries"]]
    if asked.options.steps:
        listed = [replace(entry, steps=asked.options.steps) for entry in listed]
    check(_plan(shared, listed))
    with hold_campaign(path):
        changed = {"shared": shared.model_dump(), "entries": [entry.to_json() for entry in listed]}
        write_manifest(path, manifest | changed)
    return _run(path, shared, listed, manifest["command"], asked.json)


def _named(options: Sequence[str]) -> str:
    return f" (not --{' --'.join(name.replace('_', '-') for name in options)})" if options else ""


def _file_of(what: Sequence[Path]) -> tuple[CampaignFile, Path]:
    """The file that was given, or one that lists the problems that were."""
    files = [path for path in what if path.suffix == ".toml"]
    if not files:
        for path in what:
            if path.is_dir():
                raise BadInputError(
                    f"{path} is a folder and no campaign; give its problems: {path}/*.py"
                )
        tables = [ProblemTable(file=str(path)) for path in what]
        return CampaignFile(problem=tables), Path.cwd()
    if len(what) > 1:
        raise BadInputError(f"{files[0]} lists the problems: give nothing beside it")
    return read_campaign_file(files[0]), files[0].resolve().parent


def _shared(file: CampaignFile, said: dict[str, Any]) -> Shared:
    """What a campaign has once; the command line stands above the file."""
    return Shared(**file.model_dump(include=set(Shared.model_fields)) | said)


def _words(asked: Asked) -> list[str]:
    """The options of the command line."""
    words: list[str] = []
    for name, value in [*asked.options, *asked.shared.items()]:
        option = f"--{name.replace('_', '-')}"
        if name == "settings":
            for key, setting in value.items():
                words += ["--set", f"{key}={setting}"]
        elif value is True:
            words.append(option)
        elif value is not None:
            for one in value if isinstance(value, list) else [value]:
                words += [option, str(one)]
    return words


def _plan(shared: Shared, listed: Sequence[Entry]) -> Plan:
    """What all searches have in common, with everybody who is asked in any of them."""
    everybody = dict.fromkeys(name for entry in listed for name in entry.proposers)
    plan = Plan(
        proposers=tuple(everybody),
        budget=shared.budget,
        prompts=shared.prompts,
        record=shared.record,
        replay=shared.replay,
        base_url=shared.base_url,
        memory=shared.memory,
    )
    return with_templates(plan, shared.prompts)


def _run(
    path: Path, shared: Shared, listed: Sequence[Entry], command: str, output: Path | None
) -> int:
    """Searches until the end, the budget's or Ctrl-C; then shows and writes what there is."""
    console = Console()
    plan = _plan(shared, listed)
    servers = Servers()
    common = Common(plan=replace(plan, budget=""), servers=servers)
    common.by_time = plan.limits.seconds is not None
    view = CampaignView(console)
    courses = [course_of(entry, path, common, view, shared.turn_steps) for entry in listed]
    for course in courses:
        course.show()
    rules = Rules(
        allocation=shared.allocation,
        parallel=shared.parallel,
        turn_steps=shared.turn_steps,
        first_steps=shared.first_steps,
        steps=plan.limits.steps,
    )
    loop, status = Campaign(courses, rules, common.spent), 0
    try:
        with hold_campaign(path), ExitStack() as stack:
            runs = [stack.enter_context(read_run(c.path)) for c in courses if c.exists]
            stores = [run.store for run in runs]
            common.over = clock(plan.limits, [n for store in stores for n in store.nodes()])
            common.clients = stack.enter_context(open_clients(plan, *stores))
            stack.callback(servers.close)
            for course in courses:  # after Ctrl-C, some are still at work
                stack.callback(course.park)
            with view:
                loop.run()
    except KeyboardInterrupt:
        status = INTERRUPTED
        _say_how_to_go_on(console, path)
    except AdaExploreError:
        _say_how_to_go_on(console, path)
        raise
    over = INTERRUPTED if status else common.spent()
    summary = summarized(path, shared, command, courses, loop.lost, over)
    show_results(console, summary, path, output)
    if any(course.waits() for course in courses):
        _say_where_prompts_are(console, path)
    if any(isinstance(error, InfrastructureError) for error in loop.lost.values()):
        return status or InfrastructureError.exit_code
    refused = all(result.state == "refused" for result in summary.results)
    return status or (BadInputError.exit_code if refused else 0)


def _say_where_prompts_are(console: Console, path: Path) -> None:
    console.print(
        f"prompts wait in {path / 'asks'}: answer NAME/N.1.md in NAME/N.1.reply.md, and then:\n"
        f"  adaexplore campaign {shlex.quote(str(path))}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def _say_how_to_go_on(console: Console, path: Path) -> None:
    console.print(
        "stopped; nothing recorded is lost. Go on with:\n"
        f"  adaexplore campaign {shlex.quote(str(path))}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
