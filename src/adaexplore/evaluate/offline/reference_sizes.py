"""The sizes of a reference, and the cost of the reference with other sizes.

The sizes of a reference in KernelBench form are integers in its file: constants at the top level,
and literals in `get_inputs` and `get_init_inputs`. They are replaced in the syntax tree, and the
result counts only if it runs on the meta device with every workload. The names of the constants
have no meaning here: running the reference shows whether sizes fit together.

This executes the problem's file: use it in a worker, never in a trusted process.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Access, Mode, Workload
from adaexplore.evaluate.kernels.count import OpCounter, without_values
from adaexplore.evaluate.offline.sizes import Replaced, Site, assigned, edited, in_setup
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import Inputs, check_outputs, tensors_of

SMALLEST = 16
"""Smaller integers are not sizes but kernel widths, strides or numbers of layers: they stay."""

SMALLEST_BATCH = 4
"""The same limit for a batch (the first axis of the inputs and no other axis)."""

LEAST, LEAST_BATCH = 8, 2
"""The least values to which sizes and batches are halved."""

MAX_ELEMENTS = 1 << 19
"""The budget of inputs, parameters and elements that a `forward` writes: some blocks a matrix."""

MAX_FLOPS = 1 << 28
"""The budget of matrix products and convolutions in a `forward`: some 0.1 s on one core."""


@dataclass(frozen=True, slots=True)
class SizeVariant:
    """A problem's source with other sizes, and the cost of one `forward` of it.

    `name` is "small", "odd", "own" or "batch-only". `elements` counts the inputs, the parameters
    and the elements that the operations of a `forward` write; `flops` counts the FLOPs of its
    products. A variant is within the budget if both are (`fits`). If no variant within the budget
    runs, the smallest that runs is used.
    """

    name: str
    source: str
    replaced: tuple[Replaced, ...]
    elements: int
    flops: int

    @property
    def fits(self) -> bool:
        """True if the interpreter usually finishes in well under a second."""
        return ReferenceWork(self.elements, self.flops).fits


@dataclass(frozen=True, slots=True)
class ReferenceWork:
    """The elements and FLOPs of a reference, as in `SizeVariant`."""

    elements: int
    flops: int

    @property
    def fits(self) -> bool:
        """True if both are within the budget."""
        return self.elements <= MAX_ELEMENTS and self.flops <= MAX_FLOPS


@dataclass(frozen=True, slots=True)
class _Forms:
    """The shapes of a problem's inputs and of its parameters and buffers."""

    inputs: list[torch.Size]
    parameters: list[torch.Size]

    @classmethod
    def of(cls, instance: Instance, inputs: Sequence[Inputs]) -> _Forms:
        parameters = instance.model.state_dict().values()
        given = [t.shape for each in inputs for t in tensors_of(each)]
        return cls(given, [t.shape for t in parameters])


@dataclass(frozen=True, slots=True)
class Size:
    """Integers that are one size: those of one constant, or all unnamed literals of one value.

    A batch is a size of its own.
    """

    name: str
    value: int
    is_batch: bool

    def halved(self, times: int) -> int:
        """Return the value halved `times` times, or as often as the least size allows.

        An odd value of a batch stays odd, so that a block that did not divide it still does not.
        """
        least = LEAST_BATCH if self.is_batch else LEAST
        value = self.value
        for _ in range(times):
            if value >= 2 * least:
                value = (value + 1) // 2 | (value & 1 if self.is_batch else 0)
        return value


Choice = Mapping[Size, int]
"""New values for sizes; sizes without a value stay."""


class ReferenceSizes:
    """A reference's sizes, and the cost of the reference when they change."""

    def __init__(
        self,
        source: str,
        mode: Mode,
        access: Access,
        workloads: Sequence[Workload],
        folder: Path,
    ) -> None:
        self._source = source
        self._mode = mode
        self._access = access
        self._workloads = workloads
        self._folder = folder
        self._costs: dict[str, ReferenceWork | None] = {}
        self._empty: list[bool] = []
        self._original = self._run(source, "meta")
        with without_values():
            self._forms = _Forms.of(*self._load(source, "meta"))
        tree = ast.parse(source)
        sites = [*assigned(tree), *in_setup(tree)]
        self._batches = {s for s in sites if s.value >= SMALLEST_BATCH and self._is_batch(s)}
        self._sites = [s for s in sites if s.value >= SMALLEST or s in self._batches]
        self.sizes = sorted(dict.fromkeys(map(self._size, self._sites)), key=lambda s: -s.value)

    @property
    def groups(self) -> list[list[Size]]:
        """Sizes to change together: equal sizes, the largest first; then each size alone."""
        equal: dict[tuple[bool, int], list[Size]] = {}
        for size in self.sizes:
            equal.setdefault((size.is_batch, size.value), []).append(size)
        return [*equal.values(), *([size] for size in self.sizes if len(self.sizes) > len(equal))]

    def cost(self, choice: Choice) -> ReferenceWork | None:
        """Return the cost of the reference with these sizes; None if it does not run with them.

        Within the budget it runs on the CPU too, because the meta device checks no indices.
        """
        source = self._with(choice)
        if source not in self._costs:
            try:
                self._costs[source] = cost = self._run(source, "meta")
                if cost.fits:
                    self._run(source, "cpu")
            except BadProblemError:
                self._costs[source] = None
        return self._costs[source]

    def variant(self, name: str, choice: Choice) -> SizeVariant:
        """Return the variant with these sizes, which must be legal or the original sizes."""
        cost = self.cost(choice) or self._original
        replaced = dict.fromkeys(
            Replaced(site.name, site.value, new) for site, new in self._replacements(choice)
        )
        return SizeVariant(name, self._with(choice), tuple(replaced), cost.elements, cost.flops)

    def _size(self, site: Site) -> Size:
        return Size(site.name, site.value, site in self._batches)

    def _replacements(self, choice: Choice) -> list[tuple[Site, int]]:
        chosen = [(site, choice.get(self._size(site), site.value)) for site in self._sites]
        return [(site, new) for site, new in chosen if new != site.value]

    def _with(self, choice: Choice) -> str:
        return edited(self._source, self._replacements(choice))

    def _is_batch(self, site: Site) -> bool:
        """Return True if the integer is the first axis of inputs, and of no parameter."""
        try:
            with without_values():
                now = _Forms.of(
                    *self._load(edited(self._source, [(site, site.value // 2)]), "meta")
                )
        except BadProblemError:
            return False
        was = self._forms
        return (
            now.parameters == was.parameters
            and now.inputs != was.inputs
            and [shape[1:] for shape in now.inputs] == [shape[1:] for shape in was.inputs]
        )

    def _run(self, source: str, device: str) -> ReferenceWork:
        """Run one `forward` per workload; return the sum of their costs.

        Raises `BadProblemError` for a failure and for an output that cannot be compared.
        """
        counter, empty = OpCounter(), list[bool]()
        with without_values():
            instance, inputs = self._load(source, device)
            for each in inputs:
                with counter:
                    outputs = instance(each)
                if device != "meta":
                    check_outputs("problem.py", outputs, instance.device)
                empty += [t.numel() == 0 for _, t in outputs]
        self._empty = self._empty or empty
        if not empty or empty != self._empty:
            raise BadProblemError("problem.py: an output loses its elements at these sizes")
        weights = sum(p.numel() for p in instance.model.parameters())
        given = sum(t.numel() for each in inputs for t in tensors_of(each))
        return ReferenceWork(counter.elements + weights + given, counter.flops)

    def _load(self, source: str, device: str) -> tuple[Instance, list[Inputs]]:
        instance = Instance.load(
            source,
            "Model",
            device=device,
            seed=0,
            mode=self._mode,
            folder=self._folder,
            name="problem.py",
            access=self._access,
        )
        return instance, [instance.inputs(0, workload) for workload in self._workloads]
