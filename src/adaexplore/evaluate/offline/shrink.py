"""Smaller sizes for a problem, so that Triton's interpreter can run its candidates.

The sizes of a reference in KernelBench form are integers in its file: constants at the top level,
and literals in `get_inputs` and `get_init_inputs`. They are replaced in the syntax tree, and the
result counts only if it runs on the meta device with every workload. The names of the constants
mean nothing here: running shows whether sizes fit together.

This executes the problem's file: call it in a worker (`job`), never in a trusted process.
"""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import torch

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Access, Mode, Problem, Workload
from adaexplore.evaluate.kernels.count import OpCounter, without_values
from adaexplore.evaluate.offline.sizes import Replaced, Site, assigned, edited, in_setup
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import Inputs, check_outputs, tensors_of

_NO_ACCESS = Access()
_DEFAULT = Workload()
SMALLEST = 16
"""Integers below are no sizes but kernel widths, strides, numbers of layers: they stay."""

SMALLEST_BATCH = 4
"""The same for a batch (the first axis of the inputs and nothing else)."""

LEAST, LEAST_BATCH = 8, 2
"""How far sizes and batches are halved."""

HALVINGS = range(12, -1, -1)
"""How often sizes are halved, all together, so that what must divide another goes on doing so."""

MAX_ELEMENTS = 1 << 19
"""Of inputs, parameters and what is written in one `forward`: leaves matrices of some blocks."""

MAX_FLOPS = 1 << 28
"""Of matrix products and convolutions in one `forward`; some 0.1 s on one core."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A problem's source with other sizes, and what one `forward` of it amounts to.

    `name` is "small", "odd", "own" or "batch-only". `elements` are the inputs, the parameters and
    what the operations of a `forward` write; `flops` those of its products. A variant is within the
    budget if both are (`fits`); where nothing smaller runs, the smallest that does is given all the
    same.
    """

    name: str
    source: str
    replaced: tuple[Replaced, ...]
    elements: int
    flops: int

    @property
    def fits(self) -> bool:
        """True if the interpreter is done with it in well under a second, as a rule."""
        return self.elements <= MAX_ELEMENTS and self.flops <= MAX_FLOPS


def job(request: dict[str, Any]) -> dict[str, Any]:
    """Run `variants` as a job (see `sandbox.jobs`): {"problem"} to {"variants": [...], "why"}.

    A reference that does not run on the meta device has no variants, and "why" is the reason.
    """
    problem = Problem.from_json(request["problem"])
    try:
        found = variants(
            problem.source,
            mode=problem.mode,
            access=problem.access,
            workloads=problem.workloads,
        )
    except BadProblemError as error:
        return {"variants": [], "why": str(error)}
    return {"variants": [asdict(variant) for variant in found], "why": ""}


def from_job(reply: Mapping[str, Any]) -> list[Variant]:
    """Return the variants in a reply of `job`."""
    return [
        Variant(**{**data, "replaced": tuple(Replaced(**r) for r in data["replaced"])})
        for data in reply["variants"]
    ]


def variants(
    source: str,
    *,
    mode: Mode = "as-built",
    access: Access = _NO_ACCESS,
    workloads: Sequence[Workload] = (_DEFAULT,),
) -> list[Variant]:
    """Return variants of a reference with other sizes, in the order in which to try them.

    "small", always there, has its sizes halved until it fits the budget. "odd" has sizes next to
    those, primes where they are legal: `<` against `<=` hides where blocks divide sizes. For
    kernels written for their sizes "own" is the reference as it is, and "batch-only" has nothing
    but the batch reduced. What is equal to one before it is left out.

    Raises `BadProblemError` where the reference as it is does not run on the meta device.
    """
    with tempfile.TemporaryDirectory() as folder:
        shapes = _Shapes(source, mode, access, workloads, Path(folder))
        small = _small(shapes)
        chosen = {
            "small": small,
            "odd": _odd(shapes, small),
            "own": {},
            "batch-only": _batch_only(shapes),
        }
        found: dict[str, Variant] = {}
        for name, choice in chosen.items():
            variant = shapes.variant(name, choice)
            found.setdefault(variant.source, variant)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Cost:
    elements: int
    flops: int

    @property
    def fits(self) -> bool:
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
class _Size:
    """Integers that are one size: of one constant, or literals, which have no name, of one value.

    Batches have sizes of their own.
    """

    name: str
    value: int
    is_batch: bool

    def halved(self, times: int) -> int:
        """Halved so often, or as often as the least size allows.

        An odd batch stays odd: no block of several divides it then, as none divided it before.
        """
        least = LEAST_BATCH if self.is_batch else LEAST
        value = self.value
        for _ in range(times):
            if value >= 2 * least:
                value = (value + 1) // 2 | (value & 1 if self.is_batch else 0)
        return value


_Choice = Mapping[_Size, int]
"""New values for sizes; those that are not in it stay."""


class _Shapes:
    """A reference's sizes, and what happens when they change."""

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
        self._costs: dict[str, _Cost | None] = {}
        self._original = self._run(source, "meta")
        with without_values():
            self._forms = _Forms.of(*self._load(source, "meta"))
        tree = ast.parse(source)
        sites = [*assigned(tree), *in_setup(tree)]
        self._batches = {s for s in sites if s.value >= SMALLEST_BATCH and self._is_batch(s)}
        self._sites = [s for s in sites if s.value >= SMALLEST or s in self._batches]
        self.sizes = sorted(dict.fromkeys(map(self._size, self._sites)), key=lambda s: -s.value)

    @property
    def groups(self) -> list[list[_Size]]:
        """Sizes to change together: those of one value, the largest first; then each by itself."""
        equal: dict[tuple[bool, int], list[_Size]] = {}
        for size in self.sizes:
            equal.setdefault((size.is_batch, size.value), []).append(size)
        return [*equal.values(), *([size] for size in self.sizes if len(self.sizes) > len(equal))]

    def cost(self, choice: _Choice) -> _Cost | None:
        """Return the cost of the reference with these sizes; None where it does not run with them.

        Within the budget it is run on the CPU too: the meta device checks no index, for one.
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

    def variant(self, name: str, choice: _Choice) -> Variant:
        """The variant with these sizes, which must be legal or the original's."""
        cost = self.cost(choice) or self._original
        replaced = dict.fromkeys(
            Replaced(site.name, site.value, new) for site, new in self._replacements(choice)
        )
        return Variant(name, self._with(choice), tuple(replaced), cost.elements, cost.flops)

    def _size(self, site: Site) -> _Size:
        return _Size(site.name, site.value, site in self._batches)

    def _replacements(self, choice: _Choice) -> list[tuple[Site, int]]:
        chosen = [(site, choice.get(self._size(site), site.value)) for site in self._sites]
        return [(site, new) for site, new in chosen if new != site.value]

    def _with(self, choice: _Choice) -> str:
        return edited(self._source, self._replacements(choice))

    def _is_batch(self, site: Site) -> bool:
        """Return True if it is the first axis of inputs alone, not even of a parameter."""
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

    def _run(self, source: str, device: str) -> _Cost:
        """Run one `forward` per workload; return their sum.

        Raises `BadProblemError` for a failure and for an output that cannot be compared.
        """
        counter = OpCounter()
        with without_values():
            instance, inputs = self._load(source, device)
            for each in inputs:
                with counter:
                    outputs = instance(each)
                if device != "meta":
                    check_outputs("problem.py", outputs)
                if not outputs or any(t.numel() == 0 for _, t in outputs):
                    raise BadProblemError(
                        "problem.py: forward() returns no tensor, or an empty one"
                    )
        weights = sum(p.numel() for p in instance.model.parameters())
        given = sum(t.numel() for each in inputs for t in tensors_of(each))
        return _Cost(counter.elements + weights + given, counter.flops)

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


def _small(shapes: _Shapes) -> _Choice:
    """All sizes halved as often as it takes to fit; else each as often as is legal."""
    best: _Choice = {}
    cost = None
    for times in HALVINGS:
        choice = {size: size.halved(times) for size in shapes.sizes}
        found = shapes.cost(choice)
        if found is None:
            continue
        if cost is None or found.fits:
            best, cost = choice, found
        if not found.fits:
            break
    return best if cost is not None and cost.fits else _each_as_small_as_legal(shapes, best)


def _each_as_small_as_legal(shapes: _Shapes, best: _Choice) -> _Choice:
    """One size after the other, the largest first, until it fits or no size gives way any more."""
    before = None
    while best != before:
        before = best
        for group in shapes.groups:
            best = _as_small_as_legal(shapes, best, group)
            found = shapes.cost(best)
            if found is not None and found.fits:
                return best
    return best


def _as_small_as_legal(shapes: _Shapes, best: _Choice, group: list[_Size]) -> _Choice:
    for times in HALVINGS:
        choice = {**best, **{size: size.halved(times) for size in group}}
        if all(choice[size] >= best.get(size, size.value) for size in group):
            break
        if shapes.cost(choice) is not None:
            return choice
    return best


def _odd(shapes: _Shapes, small: _Choice) -> _Choice:
    """Next to a small choice, each size as uneven as is legal; where possible all at once."""
    limit = shapes.cost(small)
    near = {size: small.get(size, size.value) for size in shapes.sizes}

    def is_good(choice: _Choice) -> bool:
        found = shapes.cost(choice)
        return found is not None and (found.fits or limit is None or not limit.fits)

    for primes in ({size: next(_primes(near[size], step)) for size in near} for step in (1, -1)):
        if is_good(primes):
            return primes
    choice = near
    for group in shapes.groups:
        if any(choice[size] % 2 for size in group):
            continue
        for other in _uneven(near[group[0]]):
            tried = {**choice, **dict.fromkeys(group, other)}
            if is_good(tried):
                choice = tried
                break
    return choice


def _batch_only(shapes: _Shapes) -> _Choice:
    """The batch halved until it fits, or to the least."""
    best: _Choice = {}
    for times in HALVINGS:
        choice = {size: size.halved(times) for size in shapes.sizes if size.is_batch}
        found = shapes.cost(choice)
        if found is None:
            continue
        if not best or found.fits:
            best = choice
        if not found.fits:
            break
    return best


def _uneven(value: int) -> Iterator[int]:
    """Sizes to try in the place of one: primes, other odd ones, odd multiples of a part of it."""
    yield next(_primes(value, 1))
    yield next(_primes(value, -1))
    yield from (n for n in range(value + 1, value + 6) if n % 2)
    yield from (value // part * (part + 1) for part in (2, 4, 8) if value % part == 0)
    yield from (value // part * (part - 1) for part in (4, 8) if value % part == 0)


def _primes(start: int, step: int) -> Iterator[int]:
    """The odd primes from `start`, or 3, upwards or downwards."""
    numbers = count(max(start, 3)) if step > 0 else range(max(start, 3), 2, step)
    return (n for n in numbers if all(n % d for d in range(2, int(n**0.5) + 1)))
