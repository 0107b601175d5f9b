"""The front door: searches and verdicts from Python, as the command line makes them.

The functions print nothing. Progress comes as events: iterate over `explore`, or pass a listener.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.errors import AdaExploreError, BadInputError
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.evaluator import Evaluator
from adaexplore.core.protocols.listener import Event, Opened, Prepared, follow
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.configure import make_config, option_fields
from adaexplore.core.verdict.evaluation import Evaluation, Failed, Fault
from adaexplore.llm.code import ReplyError, check_module
from adaexplore.run import explore as application
from adaexplore.run.handle import Run
from adaexplore.run.live import TRAINING, capture_module, is_module
from adaexplore.run.outcome.uses import with_uses
from adaexplore.run.parts import take_objects
from adaexplore.run.session import load_problem as load_file
from adaexplore.run.verdicts.take_over import judged
from adaexplore.store import require_free
from adaexplore.store.directory import MODULE_NAME

if TYPE_CHECKING:
    from torch import nn

    from adaexplore.problems.optimized import Captured

OnEvent = Callable[[Event], None]
"""A `Listener`, or any function of an event."""


def optimize(
    problem: str | Path | Problem | nn.Module,
    inputs: Any = (),
    *,
    kwargs: Any = None,
    config: Config | None = None,
    listener: OnEvent | None = None,
    **options: Any,
) -> Run:
    """Search for a faster kernel and return the run.

    Takes what `explore` takes; `listener` is called with every event. Ctrl-C raises
    `KeyboardInterrupt` and leaves a run that `Run(path).resume()` continues.
    """
    opened: list[Path] = []

    def hear(event: Event) -> None:
        if isinstance(event, Opened):
            opened.append(event.path)
        if listener:
            listener(event)

    ordered = _order(problem, inputs, kwargs, config, options)
    try:
        follow(application.explore(ordered.order), hear)
    except (KeyboardInterrupt, AdaExploreError) as error:
        if opened:
            error.add_note(f"the run goes on with: adaexplore.Run({str(opened[0])!r}).resume()")
        raise
    return Run(ordered.order.path, parts=ordered.order.parts, captured=ordered.captured)


def explore(
    problem: str | Path | Problem | nn.Module,
    config: Config | None = None,
    *,
    inputs: Any = (),
    kwargs: Any = None,
    **options: Any,
) -> Generator[Event]:
    """Search for a faster kernel; return a generator of the events as they happen.

    `problem` is the path of a problem's file, a `Problem`, or a module with example `inputs`: the
    arguments of one call as a tuple, or a list of such tuples; `kwargs` has the named arguments of
    each call.

    `options` are fields of `Config`, on top of `config`. Some may be objects: `model` is the name
    of a model, a `Client`, a function from a `Prompt` to a text or a `Reply`, or a list of these;
    `proposer` is "compiler" or a `Proposer`; `policy` is a policy's name, a `Policy` or its class;
    `evaluator` is an `Evaluator`.

    Raises `BadInputError` at once for options that cannot be used. Closing the generator leaves a
    run that `Run(path).resume()` continues; the path is in the event `Opened`.
    """
    return application.explore(_order(problem, inputs, kwargs, config, options).order)


def evaluate(
    problem: str | Path | Problem,
    candidate: str | Path | Candidate,
    *,
    config: Config | None = None,
    listener: OnEvent | None = None,
    evaluator: Evaluator | None = None,
    **options: Any,
) -> Evaluation:
    """Judge one candidate: correctness, precision class, and speed.

    `candidate` is the path of a file that defines `ModelNew`, or a `Candidate`. `options` are
    fields of `Config`, on top of `config`.

    Raises `BadInputError` for a problem or an option that cannot be used, and for a file that
    defines no `ModelNew`. A candidate that fails is an evaluation (`Failed`), never an exception.
    """
    chosen = make_config(options, config)
    return judge(problem, candidate, chosen, listener=listener, evaluator=evaluator).verdict


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate with its verdict, and the place of that: empty where no process was needed.

    `labels` are the problem's, each with its reason.
    """

    problem: Problem
    candidate: Candidate
    verdict: Evaluation
    environment: Environment = field(default_factory=Environment)
    labels: Mapping[str, str] = field(default_factory=dict)


def judge(
    problem: str | Path | Problem,
    candidate: str | Path | Candidate,
    config: Config,
    *,
    listener: OnEvent | None = None,
    evaluator: Evaluator | None = None,
) -> Judged:
    """Judge one candidate as `evaluate` does, and say where."""
    source = "" if isinstance(candidate, Candidate) else read_kernel(Path(candidate))
    loaded = _problem(problem, config)
    if not isinstance(candidate, Candidate):
        candidate = Candidate(source, loaded.language)
    return follow(_judge(loaded, candidate, config, evaluator), listener)


def load_problem(path: str | Path, config: Config | None = None, **options: Any) -> Problem:
    """Load a problem from a file; `options` are fields of `Config`, on top of `config`.

    Raises `BadInputError` for a file or an option that cannot be used.
    """
    return _problem(path, make_config(options, config))


def read_source(path: Path, what: str = "candidate") -> str:
    """Read the source of a candidate, or of something else.

    Raises `BadInputError` for a file that cannot be read or is not UTF-8 text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"{path}: cannot read the {what}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path}: not UTF-8 text: {error.reason}") from error


def read_kernel(path: Path) -> str:
    """Read the source of a candidate to be judged; one that is not Python gets its verdict.

    Raises `BadInputError` as `read_source` does, and for a module that defines no `ModelNew`.
    """
    source = read_source(path)
    try:
        compile(source, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    try:
        check_module(source)
    except ReplyError as error:
        raise BadInputError(f"{path}: {error}") from None
    return source


def syntax_failure(candidate: Candidate) -> Failed | None:
    """Return the verdict on a source that is not Python, None for any other."""
    try:
        ast.parse(candidate.source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 0
        lines = candidate.source.splitlines()
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        message = getattr(error, "msg", None) or str(error)
        fault = Fault("SyntaxError", message, line, text)
        place = f" (line {line})" if line else ""
        return Failed("compile_error", f"SyntaxError: {message}{place}", feedback=fault)
    return None


def _judge(
    problem: Problem, candidate: Candidate, config: Config, evaluator: Evaluator | None
) -> Generator[Event, None, Judged]:
    failed = syntax_failure(candidate)
    if failed:
        return Judged(problem, candidate, failed)  # without a process
    environment = Environment()
    with ExitStack() as stack:
        if evaluator is None:
            running = yield from application.start_session(stack, problem, config)
            evaluator, environment = running.evaluator, running.environment
        facts = evaluator.prepare()
        yield Prepared(facts)
        verdict = with_uses(judged(evaluator, candidate), candidate, evaluator)
        return Judged(problem, candidate, verdict, environment, facts.labels)


@dataclass(frozen=True, slots=True)
class _Ordered:
    """A checked order, and the module that it is for, if there is one."""

    order: application.Order
    captured: Captured | None


def _order(
    problem: Any, inputs: Any, kwargs: Any, base: Config | None, options: Mapping[str, Any]
) -> _Ordered:
    """Return the checked order that the arguments of `explore` describe."""
    parts, fields = take_objects(options)
    chosen = make_config(fields, base)
    given = _given(problem, inputs, kwargs, chosen)
    order = application.make_order(
        given.problem, chosen, given.path, source=given.file, parts=parts, notices=given.notices
    )
    return _Ordered(order, given.captured)


@dataclass(frozen=True, slots=True)
class _Given:
    """The problem of a search, and the folder of its run."""

    problem: Problem
    path: Path
    file: Path | None = None
    captured: Captured | None = None
    notices: tuple[str, ...] = ()


def _given(problem: Any, inputs: Any, kwargs: Any, config: Config) -> _Given:
    if is_module(problem):
        path = application.run_path(type(problem).__name__, config)
        require_free(path)
        folder = path.resolve() / MODULE_NAME
        captured = capture_module(problem, inputs, kwargs, config, folder)
        notices = (TRAINING,) if problem.training else ()
        return _Given(captured.problem, path, captured=captured, notices=notices)
    if not isinstance(problem, str | Path | Problem):
        raise BadInputError(
            f"a {type(problem).__name__} is no problem; give a module with example inputs, the "
            "path of a problem's file, or an adaexplore.Problem"
        )
    if inputs != () or kwargs:
        raise BadInputError("example inputs go with a module; a problem's file makes its own")
    loaded = _problem(problem, config)
    file = None if isinstance(problem, Problem) else Path(problem)
    return _Given(loaded, application.run_path(loaded.name, config), file)


def _problem(problem: str | Path | Problem, config: Config) -> Problem:
    if not isinstance(problem, Problem):
        return load_file(Path(problem), config)
    given = [
        name
        for name in option_fields("problem")
        if name in config.model_fields_set and name != "seed"
    ]
    if given:
        raise BadInputError(
            f"{given[0]} is part of a Problem: use dataclasses.replace, or give the problem's file"
        )
    return problem
