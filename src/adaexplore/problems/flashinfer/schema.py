"""Definitions and workloads of FlashInfer-Bench and SOL-ExecBench, as their JSON has them.

Fields that nothing here needs are dropped, so both versions of the schema can be read.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adaexplore.core.errors import BadProblemError

DTYPES = (
    *("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
)
"""The dtypes that inputs can be drawn in; `float4` formats are stored and cannot be computed with.
"""

RANDOM, SCALAR, SAFETENSORS, CUSTOM = "random", "scalar", "safetensors", "custom"
_KINDS = (RANDOM, SCALAR, SAFETENSORS, CUSTOM)
_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """An input or output: the names or sizes of its axes, None for a scalar, and its dtype."""

    shape: tuple[str, ...] | None
    dtype: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A kernel to be written: its axes, inputs, outputs and reference.

    `const_axes` have a fixed size, `var_axes` get theirs from a workload, and `expr_axes` are
    computed from the others. `reference` is Python source with a function `run`. `constraints` are
    Python expressions over axes and inputs. `custom_inputs` names the function of the reference
    that makes the inputs, if there is one.
    """

    name: str
    op_type: str
    const_axes: Mapping[str, int]
    var_axes: tuple[str, ...]
    expr_axes: Mapping[str, str]
    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]
    reference: str
    constraints: tuple[str, ...] = ()
    description: str = ""
    custom_inputs: str = ""

    @staticmethod
    def from_json(data: Any, where: str) -> Definition:
        """Read a definition; raise `BadProblemError` that begins with `where` for another form."""
        try:
            axes = {str(name): axis for name, axis in data["axes"].items()}
            return Definition(
                name=str(data["name"]),
                op_type=str(data.get("op_type") or ""),
                const_axes={n: int(a["value"]) for n, a in axes.items() if a["type"] == "const"},
                var_axes=tuple(n for n, a in axes.items() if a["type"] == "var"),
                expr_axes={n: a["expression"] for n, a in axes.items() if a["type"] == "expr"},
                inputs=_specs(data["inputs"]),
                outputs=_specs(data["outputs"]),
                reference=str(data["reference"]),
                constraints=tuple(data.get("constraints") or ()),
                description=str(data.get("description") or ""),
                custom_inputs=str(data.get("custom_inputs_entrypoint") or ""),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadProblemError(
                f"{where}: is no definition of FlashInfer-Bench: {_why(error)}"
            ) from None

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of all axes."""
        return (*self.const_axes, *self.var_axes, *self.expr_axes)

    def sizes(self, axes: Mapping[str, int]) -> dict[str, int]:
        """Return the size of every axis for the sizes of the variable ones.

        Raises `BadProblemError` for one that is missing, or an expression that cannot be computed.
        """
        missing = [name for name in self.var_axes if name not in axes]
        if missing:
            raise BadProblemError(f"{self.name}: a workload has no size for the axis {missing[0]}")
        found = {**self.const_axes, **{name: axes[name] for name in self.var_axes}}
        for name, expression in self.expr_axes.items():
            try:
                found[name] = int(_computed(ast.parse(expression, mode="eval").body, found))
            except (SyntaxError, KeyError, TypeError, ZeroDivisionError) as error:
                raise BadProblemError(
                    f"{self.name}: the axis {name} = {expression!r} cannot be computed: "
                    f"{_why(error)}"
                ) from None
        return found


@dataclass(frozen=True, slots=True)
class InputSource:
    """The origin of an input of a workload: random, a scalar, a safetensors file, or custom."""

    kind: str
    value: float | int | bool | None = None
    path: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class WorkloadTolerance:
    """The tolerance of a workload of SOL-ExecBench; `error_cap` bounds every absolute error."""

    atol: float = 1e-2
    rtol: float = 1e-2
    matched: float = 0.99
    error_cap: float | None = None


@dataclass(frozen=True, slots=True)
class BenchWorkload:
    """One size of a definition: the sizes of its variable axes, and its inputs.

    `made` says that the dataset has no workload for the definition, and this one stands in. `name`
    is the name of the problem's workload (see `named`).
    """

    uuid: str
    axes: Mapping[str, int]
    inputs: Mapping[str, InputSource]
    tolerance: WorkloadTolerance | None = None
    made: bool = False
    name: str = ""

    @staticmethod
    def from_json(data: Any, where: str) -> BenchWorkload:
        """Read a workload, or the trace that holds it; raise `BadProblemError` for other forms."""
        try:
            plain = data.get("workload", data)
            tolerance = plain.get("tolerance")
            return BenchWorkload(
                uuid=str(plain["uuid"]),
                axes={str(name): int(size) for name, size in plain["axes"].items()},
                inputs={str(name): _source(value) for name, value in plain["inputs"].items()},
                tolerance=None if tolerance is None else _tolerance(tolerance),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadProblemError(
                f"{where}: is no workload of FlashInfer-Bench: {_why(error)}"
            ) from None


def named(workloads: Sequence[BenchWorkload]) -> list[BenchWorkload]:
    """Return the workloads of a definition with their names in a problem.

    A name is the first part of the UUID and the sizes; the whole UUID where names were alike.
    """
    sizes = [" ".join(f"{axis}={size}" for axis, size in each.axes.items()) for each in workloads]
    uuids = [workload.uuid for workload in workloads]
    pairs = list(zip((uuid.partition("-")[0] for uuid in uuids), sizes, strict=True))
    if len(set(pairs)) < len(pairs):
        pairs = list(zip(uuids, sizes, strict=True))
    return [
        replace(workload, name=" ".join(pair).strip())
        for workload, pair in zip(workloads, pairs, strict=True)
    ]


def _specs(data: Any) -> dict[str, TensorSpec]:
    return {
        str(name): TensorSpec(
            None if spec["shape"] is None else tuple(str(axis) for axis in spec["shape"]),
            str(spec["dtype"]),
        )
        for name, spec in data.items()
    }


def _source(data: Any) -> InputSource:
    if data["type"] not in _KINDS:
        raise ValueError(f"inputs of type {data['type']!r} are not known")
    return InputSource(
        data["type"], data.get("value"), data.get("path", ""), data.get("tensor_key", "")
    )


def _tolerance(data: Any) -> WorkloadTolerance:
    plain = WorkloadTolerance()
    return WorkloadTolerance(
        atol=float(data.get("max_atol", plain.atol)),
        rtol=float(data.get("max_rtol", plain.rtol)),
        matched=float(data.get("required_matched_ratio", plain.matched)),
        error_cap=data.get("max_error_cap"),
    )


def _computed(node: ast.expr, sizes: Mapping[str, int]) -> Any:
    """Return the value of an arithmetic expression over sizes; it may hold nothing else."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            return sizes[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_computed(left, sizes), _computed(right, sizes))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_computed(operand, sizes))
        case _:
            raise TypeError("only numbers, axes and + - * / // % ** are allowed")


def _why(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else str(error)
