"""robust-kbench as a benchmark: tasks in folders, run under several settings.

A task is `func_forward.py` with `config_forward.json`, and the same for `backward`. The settings
combine arguments of the constructor, of `get_inputs`, and of both. Each setting of a constructor is
a problem, and the settings of inputs that go with it are its workloads. A problem of a backward
task returns the gradients of its inputs and weights, given that of its output.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Workload
from adaexplore.core.protocols.benchmark import (
    Answer,
    BenchmarkNeeds,
    BenchmarkTask,
    Exclusion,
)
from adaexplore.problems.benchmarks.forms import read_text
from adaexplore.problems.declared import Declared, with_declared

_WAYS = ("forward", "backward")
_ANSWER = re.compile(r"(?P<task>.+)/(?P<way>forward|backward)(?:-(?P<number>\d+))?\.py")
_FUNCTION = "fn"
"""The parameter of a task's `forward` that takes the function to call."""
_SCOPES = ("single", "multi")
_INIT = """

def get_init_inputs():
    return {init!r}
"""
_FORWARD = """

class Model(Forward):
    def forward({signature}):
        return super().forward({arguments})
"""
_BACKWARD = '''

class Model(nn.Module):
    """Gradients of the inputs and the weights of `Forward`, given that of its output."""

    def __init__(self, **settings):
        super().__init__()
        self.forward_module = Forward(**settings)

    def forward(self, *inputs_and_gradient):
        *inputs, gradient = inputs_and_gradient
        with torch.enable_grad():
            inputs = [
                each.detach().requires_grad_() if each.is_floating_point() else each
                for each in inputs
            ]
            wanted = [each for each in inputs if each.requires_grad]
            wanted += self.forward_module.parameters()
            output = self.forward_module(*inputs)
            found = torch.autograd.grad(output, wanted, gradient, allow_unused=True)
            return [each for each in found if each is not None]


def get_inputs_and_gradient(**settings):
    with torch.device("meta"):
        output = Forward(**get_init_inputs())(*get_inputs(**settings))
    return [*get_inputs(**settings), torch.randn(output.shape)]
'''
Settings = Mapping[str, Any]


class RobustKBenchTasks:
    """The tasks below `tasks/`, keyed by folder, way and number of the constructor's setting."""

    name = "robust-kbench"
    about = "211 forward and 8 backward tasks, a problem for each setting of the constructor"
    needs = BenchmarkNeeds(
        folder="robust-kbench", get="git clone https://github.com/SakanaAI/robust-kbench"
    )

    def tasks(self, data: Path) -> Sequence[BenchmarkTask]:
        """See `Benchmark.tasks`."""
        return [task for file in _files(data) if not _why_not(file) for task in _tasks(data, file)]

    def excluded(self, data: Path) -> Sequence[Exclusion]:
        """See `Benchmark.excluded`."""
        return [
            Exclusion(_key(data, file), _category(data, file), why)
            for file in _files(data)
            if (why := _why_not(file))
        ]

    def answers(self, folder: Path, data: Path | None) -> Sequence[Answer]:  # noqa: ARG002
        """See `Benchmark.answers`: modules at `TASK/forward.py` or `TASK/backward-2.py`.

        Raises `BadInputError` for its own CUDA sources, which are functions without a module.
        """
        if not folder.is_dir():
            raise BadInputError(f"--answers {folder}: no such folder")
        bare = next(iter(sorted(folder.rglob("kernel.cu"))), None)
        if bare:
            raise BadInputError(
                f"{bare}: a CUDA source binds functions and has no module; give modules with "
                "ModelNew as TASK/forward.py"
            )
        found = []
        for file in sorted(folder.rglob("*.py")):
            place = file.relative_to(folder).as_posix()
            if match := _ANSWER.fullmatch(place):
                number = match["number"] or "1"
                found.append(
                    Answer(f"{match['task']}/{match['way']}-{number}", place, read_text(file))
                )
        return found


def _root(data: Path) -> Path:
    return data / "tasks" if (data / "tasks").is_dir() else data


def _files(data: Path) -> list[Path]:
    found = [file for way in _WAYS for file in _root(data).rglob(f"func_{way}.py")]
    if not found:
        raise BadInputError(
            f"--data {data}: no file func_forward.py in folders of tasks; give a clone of "
            "github.com/SakanaAI/robust-kbench"
        )
    return sorted(found, key=lambda file: (_by_number(_key(data, file)), file.stem))


def _by_number(key: str) -> list[tuple[str, int]]:
    """Return a key that sorts numbers in names by their value."""
    parts = re.findall(r"\D+|\d+", key)
    return [("", int(part)) if part.isdigit() else (part, 0) for part in parts]


def _key(data: Path, file: Path) -> str:
    return f"{file.parent.relative_to(_root(data)).as_posix()}/{_way(file)}"


def _way(file: Path) -> str:
    return file.stem.removeprefix("func_")


def _category(data: Path, file: Path) -> str:
    """Return `forward` or `backward`, or the level of a task that KernelBench has."""
    folders = file.parent.relative_to(_root(data)).parts[:-1]
    return " ".join(folders).replace("_", " ") or _way(file)


def _why_not(file: Path) -> str:
    """Return why a file cannot become problems, empty where it can."""
    config = _config_file(file)
    if not config.is_file():
        return f"no file {config.name} beside {file.name}"
    try:
        read = json.loads(read_text(config))
        for scope in _SCOPES:
            _ = [read[f"{scope}_{part}_configs"] for part in ("input", "init", "shared")]
        tree = ast.parse(read_text(file))
    except (ValueError, KeyError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    missing = {"Model", "get_inputs"} - {getattr(node, "name", "") for node in tree.body}
    if missing:
        return f"{file.name} defines no {' and no '.join(sorted(missing))}"
    for what, function, part in (
        ("Model", _constructor(tree), "init"),
        ("get_inputs", _drawing(tree), "input"),
    ):
        given = {name for s in _SCOPES for one in read[f"{s}_{part}_configs"] for name in one}
        if unknown := given - _parameters(function):
            return f"{config.name} gives {', '.join(sorted(unknown))}, which {what} does not take"
    return ""


def _config_file(file: Path) -> Path:
    return file.with_name(f"config_{_way(file)}.json")


def _tasks(data: Path, file: Path) -> list[BenchmarkTask]:
    """Return a task for each setting of the constructor, in the order of the settings."""
    text = read_text(file)
    config = json.loads(read_text(_config_file(file)))
    return [
        BenchmarkTask(
            key=f"{_key(data, file)}-{number}",
            category=_category(data, file),
            name=f"{file.parent.name}_{_way(file)}_{number}.py",
            text=_text(text, _way(file), init, inputs),
        )
        for number, (init, inputs) in enumerate(_settings(config, ast.parse(text)), 1)
    ]


def _settings(config: Settings, tree: ast.Module) -> list[tuple[Settings, list[Settings]]]:
    """Return the constructor's settings, each with those of the inputs that go with it.

    Settings that are equal once defaults are filled in are one.
    """
    of_init, of_inputs = _defaults(tree)
    found: dict[str, tuple[Settings, list[Settings]]] = {}
    for scope in _SCOPES:
        for init in config[f"{scope}_init_configs"]:
            for inputs in config[f"{scope}_input_configs"]:
                for shared in config[f"{scope}_shared_configs"]:
                    own = {**of_init, **init, **shared}
                    drawn = {**of_inputs, **inputs, **shared}
                    _, known = found.setdefault(json.dumps(own, sort_keys=True), (own, []))
                    if drawn not in known:
                        known.append(drawn)
    return list(found.values())


def _defaults(tree: ast.Module) -> tuple[Settings, Settings]:
    """Return the literal defaults of the constructor and of `get_inputs`."""
    return _defaults_of(_constructor(tree)), _defaults_of(_drawing(tree))


def _constructor(tree: ast.Module) -> ast.FunctionDef | None:
    model = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model")
    return _function("__init__", model.body)


def _drawing(tree: ast.Module) -> ast.FunctionDef | None:
    return _function("get_inputs", tree.body)


def _function(name: str, body: Sequence[ast.stmt]) -> ast.FunctionDef | None:
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    return next((function for function in functions if function.name == name), None)


def _parameters(function: ast.FunctionDef | None) -> set[str]:
    return {argument.arg for argument in function.args.args} if function else set()


def _defaults_of(function: ast.FunctionDef | None) -> Settings:
    given = function.args.defaults if function else []
    if function is None or not given:
        return {}
    found = {}
    for argument, value in zip(function.args.args[-len(given) :], given, strict=True):
        try:
            found[argument.arg] = ast.literal_eval(value)
        except ValueError:  # an expression, which the call evaluates
            continue
    return found


def _text(text: str, way: str, init: Settings, inputs: Sequence[Settings]) -> str:
    """Return a problem's file: the task's own, with one constructor's setting and workloads."""
    ending, draw = _forward_of(ast.parse(text)), "get_inputs"
    if way == "backward":
        ending, draw = _BACKWARD, "get_inputs_and_gradient"
    text = re.sub(r"\bModel\b", "Forward", text).rstrip() + "\n" + ending
    workloads = tuple(
        Workload(_name(one, inputs), f"{draw}({', '.join(f'{k}={v!r}' for k, v in one.items())})")
        for one in inputs
    )
    return with_declared(text.rstrip() + "\n" + _INIT.format(init=dict(init)), Declared(workloads))


def _forward_of(tree: ast.Module) -> str:
    """Return a `Model` over `Forward` whose `forward` has no parameter for the function to call."""
    model = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model")
    forward = next(n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == "forward")
    own = forward.args
    names = [argument.arg for argument in own.args]
    if _FUNCTION in names:
        place = names.index(_FUNCTION)
        del own.args[place]
        own.defaults.pop(place - len(names))  # it has one: its own function
        names.remove(_FUNCTION)
    return _FORWARD.format(signature=ast.unparse(own), arguments=", ".join(names[1:]))


def _name(one: Settings, every: Sequence[Settings]) -> str:
    """Return the settings that differ between the workloads, such as `batch_size=8`."""
    parts = [f"{k}={v}" for k, v in one.items() if any(o.get(k) != v for o in every)]
    return ",".join(parts) or "inputs"
