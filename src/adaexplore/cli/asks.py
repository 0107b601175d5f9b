"""Commands for those who answer prompts themselves: start, ask, tell, evaluate-pending."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from rich.console import Console

from adaexplore.ask import PERSON
from adaexplore.cli.inspect import show_end
from adaexplore.cli.progress import SearchProgress, working
from adaexplore.cli.proposers import (
    COMPILER,
    Plan,
    check_answered,
    check_compiler,
    model_proposers,
    try_templates,
    with_memory,
    with_templates,
)
from adaexplore.cli.records import command, record_of
from adaexplore.cli.run import STARTING, start_session
from adaexplore.cli.session import (
    INTERRUPTED,
    Asked,
    Session,
    load_problem,
    preparation,
    session,
    warn,
)
from adaexplore.errors import BadInputError
from adaexplore.explore import Search
from adaexplore.llm.base import Finish, Prompt, Reply
from adaexplore.settings import parse_settings
from adaexplore.store import RunDirectory, Store, create_run, open_run, require_free
from adaexplore.study import Study

_REPLY_SUFFIX = ".reply.md"
_NAME = re.compile(r"(\d+)\.(\d+)\.reply\.md")
_PROMPT_NAME = re.compile(r"\d+\.\d+\.md")
_MOST_BYTES = 4 << 20


def start(asked: Asked, *, steps: int, plan: Plan, run: Path | None, settings: list[str]) -> int:
    """Makes a run whose prompts wait for `ask`; the exit code."""
    console = Console()
    with ExitStack() as stack:
        try:
            path, running = new_run(
                stack, console, asked, steps=steps, plan=plan, run=run, settings=settings
            )
        except KeyboardInterrupt:
            console.print("stopped; no run was made", highlight=False)
            return INTERRUPTED
        with open_run(path) as directory:
            _seed(directory, running, console)
    say(console, f"{path} is ready. Take prompts with:\n  adaexplore ask {path} -o asks/")
    return 0


def new_run(
    stack: ExitStack,
    console: Console,
    asked: Asked,
    *,
    steps: int,
    plan: Plan,
    run: Path | None,
    settings: list[str],
) -> tuple[Path, Session]:
    """A new run that a person or an agent proposes for, and the processes of its problem."""
    chosen = parse_settings(settings)
    problem = load_problem(asked)
    plan = with_memory(with_templates(plan, plan.prompts), problem)
    if chosen.compiler_seeds:
        check_compiler(problem)
    path = run or Path("runs") / f"{problem.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    require_free(path)
    running = start_session(stack, console, problem, chosen)
    words = command("start", asked, problem, steps, settings, plan)
    record = record_of(running, problem, chosen, plan, asked.seed, steps, words)
    try_templates(plan, record)
    create_run(path, record).close()
    return path, running


def _seed(directory: RunDirectory, running: Session, console: Console) -> None:
    """Has the compiler make as many first steps as the settings say."""
    store = directory.store
    run = store.run()
    if not run.settings.compiler_seeds:
        return
    proposers = {COMPILER: running.compiler(run.settings)}
    with (
        closing(proposers[COMPILER]),
        SearchProgress(console, run.steps, 0) as progress,
        suppress(KeyboardInterrupt),  # those that are there will do
    ):
        for _ in range(min(run.settings.compiler_seeds, run.steps)):
            study = Study(store, proposers)
            study.turn(study.ask(COMPILER).id)
            Search(
                store, proposers, running.evaluator, progress, directory.best_path
            ).finish_queued()


def ask(path: Path, count: int, folder: Path, steps: int | None = None, prompts: str = "") -> int:
    """Opens so many asks and writes the prompts of all that are open; the exit code.

    `steps` is a new total of planned ones, `prompts` a folder with templates from now on.
    """
    console = Console()
    with open_run(path) as directory:
        _replan(directory, steps, prompts)
        for file, what in written(directory, count, folder).items():
            say(console, f"{file}: {what}; answer in {file.stem}{_REPLY_SUFFIX}")
    return 0


def written(directory: RunDirectory, count: int, folder: Path) -> dict[Path, str]:
    """Opens so many asks and writes the prompts of all that are open: their files, and what for."""
    study = study_of(directory)
    _require_left(study, directory, count)
    _make(folder)
    for _ in range(count):
        study.prompt(PERSON)
    files = {}
    for opened in study.open():
        if opened.proposer != PERSON:  # a seed that was stopped half-way
            continue
        number, turn = study.turn(opened.id)
        if isinstance(turn, Prompt):
            file = _write(folder, opened.id, number, turn)
            files[file] = f"{opened.step_kind} step, {turn.label}"
    return files


def tell(path: Path, replies: list[Path]) -> int:
    """Takes replies from files or folders; the exit code: 0 if all could be taken, else 2."""
    console = Console()
    status = 0
    with open_run(path) as directory:
        study = study_of(directory)
        for file in _reply_files(replies):
            try:
                said = _tell_one(directory, study, file)
            except BadInputError as error:
                said, status = str(error), 2
            say(console, f"{file.name}: {said}")
    return status


def take(path: Path, folder: Path) -> None:
    """Takes the replies in a folder that are about open asks.

    Raises `BadInputError` for one that is none.
    """
    with open_run(path) as directory:
        study = study_of(directory)
        waiting = {opened.id for opened in study.open()}
        for file in sorted(folder.glob(f"*{_REPLY_SUFFIX}")):
            match = _NAME.fullmatch(file.name)
            if match is None or int(match[1]) in waiting:
                try:
                    _tell_one(directory, study, file)
                except BadInputError as error:
                    raise BadInputError(f"{file}: {error}") from None


def unanswered(store: Store, folder: Path) -> list[int]:
    """The open asks to whose last prompt there is no reply in a folder, by their ids."""
    asks = [record.ask for record in store.asks("open")]
    opened = [ask.id for ask in asks if ask.proposer == PERSON]  # not a seed, stopped half-way
    turns = {ask_id: len(store.calls(ask_id)) + 1 for ask_id in opened}
    return [i for i in opened if not (folder / f"{i}.{turns[i]}{_REPLY_SUFFIX}").exists()]


def has_misnamed(folder: Path) -> bool:
    """Whether a folder has a reply that no prompt can be told from."""
    return any(not _NAME.fullmatch(file.name) for file in folder.glob(f"*{_REPLY_SUFFIX}"))


def evaluate_pending(path: Path, parallel: int = 1) -> int:
    """Evaluates every candidate that waits for it, so many at once; the exit code."""
    console = Console()
    with open_run(path) as directory, ExitStack() as stack:
        store = directory.store
        run = store.run()
        check_answered(run, path)
        if not store.asks("queued"):
            console.print("nothing waits for its evaluation", highlight=False)
            return 0
        with working(console, STARTING):
            running = stack.enter_context(session(run.problem, run.settings, parallel))
        warn(console, running.environment)
        with working(console, preparation(run.problem)):
            running.evaluator.prepare()
        status = 0
        try:
            with SearchProgress(console, run.steps, store.node_count()) as progress:
                Search(
                    store,
                    {},  # nobody is asked
                    running.evaluator,
                    progress,
                    directory.best_path,
                    parallel=parallel,
                ).finish_queued()
        except KeyboardInterrupt:
            status = INTERRUPTED
            running.evaluator.close()
        show_end(console, directory)
        return status


def study_of(directory: RunDirectory) -> Study:
    """The study of an open run, for prompts that no machinery is needed for.

    Raises `BadInputError` for a run that is no matter of ask and tell.
    """
    run = directory.store.run()
    check_answered(run, directory.path)
    return Study(
        directory.store, model_proposers(Plan.from_json(run.plan, run.proposer), run.settings)
    )


def _replan(directory: RunDirectory, steps: int | None, prompts: str) -> None:
    store = directory.store
    run = store.run()
    check_answered(run, directory.path)
    if prompts:
        plan = with_templates(Plan.from_json(run.plan, run.proposer), prompts)
        try_templates(plan, run)
        store.set_plan(plan.to_json())
    if steps is not None:
        store.set_steps(max(steps, store.node_count()))


def _require_left(study: Study, directory: RunDirectory, count: int) -> None:
    if count > max(study.left, 0):
        planned, made = directory.store.run().steps, len(study.nodes)
        waiting = len(directory.store.asks("open", "queued"))
        raise BadInputError(
            f"{directory.path}: of {planned} planned steps {made} are made and {waiting} are asked "
            f"for, so there are {max(study.left, 0)} to ask for, not {count}; plan more with "
            "--steps, or write the open prompts again with -n 0"
        )


def say(console: Console, text: str) -> None:
    """Prints text as it is; a command that is broken into two lines cannot be copied."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"{folder}: cannot write prompts there: {error.strerror}") from None


def _write(folder: Path, ask_id: int, number: int, prompt: Prompt) -> Path:
    """One prompt as a file that is pleasant to read and whole to paste."""
    file = folder / f"{ask_id}.{number + 1}.md"
    if len(prompt.messages) == 1:
        text = prompt.messages[0].text
    else:
        text = "\n\n".join(f"# {m.role}\n\n{m.text}" for m in prompt.messages)
    file.write_text(text + "\n", encoding="utf-8")
    return file


def _reply_files(paths: list[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = [f for f in path.iterdir() if f.name.endswith(_REPLY_SUFFIX)]
            if not found:
                raise BadInputError(
                    f"{path} holds no replies: answer 7.1.md in a file 7.1{_REPLY_SUFFIX} beside it"
                )
            files += found
        elif path.is_file():
            files.append(path)
        else:
            raise BadInputError(f"{path} does not exist")
    return sorted(files, key=lambda f: [int(n) for n in re.findall(r"\d+", f.name)])


def _tell_one(directory: RunDirectory, study: Study, file: Path) -> str:
    """Tells one reply; what came of it, in words."""
    match = _NAME.fullmatch(file.name)
    if match is None:
        if _PROMPT_NAME.fullmatch(file.name):
            raise BadInputError(
                f"that is the prompt; its answer goes to {file.stem}{_REPLY_SUFFIX}"
            )
        raise BadInputError(f"name it after its prompt: 7.1.md is answered in 7.1{_REPLY_SUFFIX}")
    if file.stat().st_size > _MOST_BYTES:
        raise BadInputError(f"larger than {_MOST_BYTES >> 20} MiB: that is no reply")
    ask_id, number = int(match[1]), int(match[2]) - 1
    text = file.read_text(encoding="utf-8", errors="replace")
    told = directory.store.calls(ask_id)
    if 0 <= number < len(told) and told[number].reply.text == text:
        return "told before"
    finish: Finish = "complete" if text.strip() else "empty"
    turn = study.tell(ask_id, number, Reply(text, PERSON, finish))
    if isinstance(turn, Prompt):
        after = _write(file.parent, ask_id, number + 1, turn)
        return f"taken; there is a follow-up, {turn.label}: {after.name}"
    if turn.failure:
        return f"taken; no candidate: {turn.failure}"
    return f"taken; a candidate of {len(turn.candidate.source.splitlines())} lines is queued"
