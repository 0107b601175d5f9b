"""The truth that candidates are held to: input sets, float64 outputs, and bounds for each class."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import PRECISIONS, Precision
from adaexplore.evaluate.truth.casts import FLOAT32
from adaexplore.evaluate.truth.compare import LOOSEST, Deviation, Truth, bounds_from
from adaexplore.evaluate.truth.device_memory.pieces import all_finite
from adaexplore.evaluate.truth.device_memory.room import room_on
from adaexplore.evaluate.truth.device_memory.turns import let_others_time
from adaexplore.evaluate.truth.discrimination import discriminating, narrowed
from adaexplore.evaluate.truth.given.constants import (
    MovedConstants,
    constant_weights,
    constants_moved,
    move_by_name,
)
from adaexplore.evaluate.truth.given.inputs import InputSet, InputSets, names_nan
from adaexplore.evaluate.truth.precision import NORM_FACTOR, floors
from adaexplore.evaluate.truth.reference_runs import ReferenceRun, reference_runs
from adaexplore.evaluate.truth.runs import ReferenceRuns, SizeDependsOnDataError
from adaexplore.evaluate.wire.tensors import SharedTensor, fingerprint, share
from adaexplore.sandbox.user.values import Inputs, map_tensors, tensors_of

_MIN_SETS = 3
_MIN_HUGE_SETS = 2
_HUGE_SHARE = 1 / 16  # of the GPU's memory, for the truths of one set
_MEMORY_SHARE = 0.1  # of the GPU, for inputs and truths; the rest is for running, and for others
_LEAST_FREE = 0.1  # of the GPU, for the runs of a further set
_WEIGHTS_BYTES = 1 << 30  # larger models are verified under one set of weights
_ILL_CONDITIONED = 0.05  # strict eager this far from float64: no basis for a verdict
_OTHER_WEIGHTS = 1000  # how far their seed is from the problem's own


@dataclass(frozen=True)
class CheckedSet:
    """An input set in shared memory and the truth for it."""

    name: str
    from_problem: bool
    inputs: Inputs
    shared: list[SharedTensor]
    marks: list[int]
    truths: list[Truth]

    def intact(self) -> bool:
        """Return True if the inputs are unchanged."""
        return [fingerprint(s.tensor) for s in self.shared] == self.marks

    def restore(self, original: Inputs) -> None:
        """Puts the original values back."""
        for s, tensor in zip(self.shared, tensors_of(original), strict=True):
            s.fill(tensor)


@dataclass(frozen=True)
class OtherWeights:
    """The truths of the first input set under the weights that another seed gives."""

    seed: int
    parameters: dict[str, SharedTensor]
    truths: list[Truth]


@dataclass(frozen=True)
class _Draft:
    """A checked set whose bounds are not known yet; its inputs are shared."""

    given: InputSet
    outputs: list[ReferenceRun]
    shared: list[SharedTensor]


class Truths:
    """The checked sets of a reference.

    The problem's own inputs say how precise a result is: their bounds come from the largest
    error of PyTorch's own runs on all of them. The other distributions ask whether it is right;
    one that lies outside what the reference can take, or where PyTorch is not precise itself,
    is left out. With `fewest`, no more sets are taken than must be, with `own_only` none of
    other distributions. Other weights are the same for all workloads of a problem;
    `keeps_weights` is True for the first, which holds them. `errors` maps a class to the
    largest error of PyTorch's own run in it, on the problem's own inputs. Raises
    `BadProblemError` where there is no own input set to verify on.
    """

    def __init__(
        self,
        runs: ReferenceRuns,
        notes: list[str],
        *,
        other_weights: bool = True,
        keeps_weights: bool = True,
        fewest: bool = False,
        own_only: bool = False,
    ) -> None:
        self._runs = runs
        self._keeps_weights = keeps_weights
        self._fewest = fewest
        self._notes = notes
        self.inputs = InputSets(
            runs.instance,
            runs.problem.seed,
            runs.workload,
            handles_nan=names_nan(runs.problem.source),
            own_only=own_only,
        )
        if own_only:
            self._note(
                "verified on inputs of its own kind only: other inputs, such as other integers of "
                "the same range, break an assertion in a kernel of the reference"
            )
        if self.inputs.sizes_vary:
            self._note(
                "the sizes of its inputs differ from draw to draw: judged at those of the first "
                "(get_input_groups() names several)"
            )
        if self.inputs.unseeded:
            self._note(
                "its inputs come from a generator that no seed reaches, such as "
                "numpy.random.default_rng(): all are variations of one draw"
            )
        drafts = list(self._drafts())
        if runs.wide_casts > FLOAT32:
            self._note("casts of the reference to float32 and narrower are left out of its truth")
        own = [d.outputs for d in drafts if d.given.from_problem]
        if not own:
            raise BadProblemError(
                f"{runs.problem.name}.py: the reference in fp32 is too far from its own float64 "
                "run on its own inputs, so nothing can be verified against it: its output is "
                "little but rounding errors (as is the mean of what has just been normalised)"
            )
        self._largest = [_largest(outputs) for outputs in zip(*own, strict=True)]
        self.errors = _over_all(self._largest)
        self._refuse_a_class_too_far_off()
        self._floors = [
            narrowed(outputs, floors(outputs[0].dtype, from_problem=True), runs.precision)
            for outputs in zip(*own, strict=True)
        ]
        self.sets = [self._checked(draft) for draft in drafts]
        self.other_weights = self._other_weights() if other_weights else None
        self.moved_constants = self._moved_constants() if other_weights else None
        self._drop_indiscriminate_classes()

    def _refuse_a_class_too_far_off(self) -> None:
        """Raise `BadProblemError` where the reference's own code would be wrong in the class."""
        asked = self._runs.precision
        error = self.errors.get(asked, 0.0)
        if LOOSEST < error < math.inf:
            stricter = PRECISIONS[max(PRECISIONS.index(asked) - 1, 0)]
            raise BadProblemError(
                f"{self._runs.problem.name}.py: PyTorch's own run in class {asked} is off by "
                f"{error:.2g} (relative, against float64), so nothing can be verified in it; use "
                f"--precision {stricter}"
            )

    @property
    def from_problem(self) -> list[CheckedSet]:
        """The checked sets on the problem's own inputs."""
        return [s for s in self.sets if s.from_problem]

    def of(self, inputs: Inputs) -> list[Truth]:
        """Return the truths on other inputs of the problem's own kind."""
        outputs, _ = reference_runs(self._runs, inputs, self.inputs.frozen)
        truths = []
        for output, known, floor in zip(outputs, self._largest, self._floors, strict=True):
            bounds = bounds_from(_largest([output], known), floor)
            offered = {
                p: bound
                for p, bound in bounds.items()
                if p in self.from_problem[0].truths[0].bounds
            }
            truths.append(Truth(output.path, output.value, offered, output.ties))
        return truths

    def _drafts(self) -> Iterator[_Draft]:
        device = self._runs.problem.device
        count, least, finite = 0, _MIN_SETS, True
        for given in self.inputs:
            if count >= least and (self._fewest or _is_short(device)):
                self._notes.append(f"memory: verified on {count} input sets only")
                return
            outputs = self._usable_runs(given, finite=finite)
            milder = None if outputs or given.from_problem else self.inputs.milder(given.name)
            if milder:
                given, outputs = milder, self._usable_runs(milder, finite=finite)
            if outputs is None:
                continue
            if given.from_problem and not given.varied:
                finite = finite and _are_finite(outputs, device)
            count += 1
            least = _MIN_HUGE_SETS if _are_huge(outputs, device) else _MIN_SETS
            draft = _draft(given, outputs)
            del given, outputs  # while the next set is drawn, the draft alone holds them
            yield draft
            del draft
            let_others_time(device)

    def _usable_runs(self, given: InputSet, *, finite: bool) -> list[ReferenceRun] | None:
        """PyTorch's own runs; None too where NaN or infinity shows inputs of no problem's kind.

        That is where the outputs on its own are `finite`.
        """
        outputs = self._reference_runs(given)
        is_own = given.from_problem and not given.varied
        device = self._runs.problem.device
        if outputs and finite and not is_own and not _are_finite(outputs, device):
            return None
        return outputs

    def _reference_runs(self, given: InputSet) -> list[ReferenceRun] | None:
        """PyTorch's own runs; None where they give no basis for a verdict."""
        try:
            outputs, exactly = reference_runs(self._runs, given.inputs, self.inputs.frozen)
        except SizeDependsOnDataError:
            if given.from_problem:
                raise
            return None
        except BadProblemError:
            if given.from_problem and not given.varied:
                raise
            return None  # outside what the reference can take
        if not exactly:
            self._note("no float64 run of the reference: verified against its strict fp32 run")
        if not all(o.strictest.norm <= _ILL_CONDITIONED for o in outputs):
            return None
        asked = self._runs.precision
        room = LOOSEST / NORM_FACTOR[asked]
        if not given.from_problem and any(
            o.shaky or o.by_class[asked].norm > room for o in outputs
        ):
            return None
        return outputs

    def _checked(self, draft: _Draft) -> CheckedSet:
        marks = [fingerprint(s.tensor) for s in draft.shared]
        truths = self._truths(draft.outputs, from_problem=draft.given.from_problem)
        return CheckedSet(
            draft.given.name,
            draft.given.from_problem,
            draft.given.inputs,
            draft.shared,
            marks,
            truths,
        )

    def _truths(self, outputs: list[ReferenceRun], *, from_problem: bool) -> list[Truth]:
        truths = []
        for output, known, floor in zip(outputs, self._largest, self._floors, strict=True):
            runs = known if from_problem else _largest([output], known)
            allowed = floor if from_problem else floors(output.dtype, from_problem=False)
            bounds = bounds_from(runs, allowed)
            truths.append(
                Truth(
                    output.path, output.value, bounds, output.ties, output.error_scale, from_problem
                )
            )
        return truths

    def _other_weights(self) -> OtherWeights | None:
        """None where there are no other weights, or they are too large, or nothing to go by."""
        runs, first = self._runs, self.from_problem[0]
        own = dict(runs.instance.model.named_parameters())  # not buffers: calls may change them
        if not own or _bytes(own) > _WEIGHTS_BYTES:
            return None
        seed = runs.problem.seed + _OTHER_WEIGHTS
        other = runs.with_weights(seed)
        drawn = dict(other.instance.model.named_parameters())
        if own.keys() != drawn.keys() or all(torch.equal(own[name], drawn[name]) for name in own):
            return None
        state = other.instance.model.state_dict() if self._keeps_weights else {}
        parameters = {name: share(t) for name, t in state.items()}
        outputs, _ = reference_runs(other, first.inputs, self.inputs.frozen)
        if not all(o.strictest.norm <= _ILL_CONDITIONED for o in outputs):
            return None
        truths = self._truths(outputs, from_problem=False)
        return OtherWeights(seed, parameters, truths)

    def _moved_constants(self) -> MovedConstants | None:
        """None where no weight is constant, or none shows, or there is nothing to go by."""
        runs, inputs = self._runs, self.from_problem[0].inputs
        own = runs.instance.model.state_dict()
        if _bytes(own) > _WEIGHTS_BYTES:
            return None
        try:
            drawn = runs.with_weights(runs.problem.seed + _OTHER_WEIGHTS)
            state = drawn.instance.model.state_dict()
            names = constant_weights(runs.instance.model, own, state)
            if not names:
                return None
            with constants_moved():
                other = runs.with_weights(runs.problem.seed + _OTHER_WEIGHTS)
            unmade = move_by_name(other.instance.model, names, state)
            made = other.instance.model.state_dict()
            changed = [n for n, t in made.items() if not torch.equal(t, state[n])]
            before, after = drawn.run("fp32", inputs), other.run("fp32", inputs)
            if all(torch.equal(a, b) for (_, a), (_, b) in zip(before, after, strict=True)):
                return None
            outputs, _ = reference_runs(other, inputs, self.inputs.frozen)
        except BadProblemError:  # other weights are outside what the reference can take
            return None
        if not all(o.strictest.norm <= _ILL_CONDITIONED for o in outputs):
            return None
        values = {n: share(made[n]) for n in changed if self._keeps_weights}
        truths = self._truths(outputs, from_problem=False)
        seed = runs.problem.seed + _OTHER_WEIGHTS
        return MovedConstants(seed, values, {n: values[n] for n in unmade if n in values}, truths)

    def _drop_indiscriminate_classes(self) -> None:
        kept = discriminating([s.truths for s in self.from_problem], self._largest)
        dropped = [p for p in PRECISIONS if p in self._runs.classes and p not in kept]
        if dropped:
            self._note(
                f"{', '.join(dropped)}: PyTorch's own error in it hides what the inputs change in "
                f"the output; candidates must be {kept[-1]}"
            )
        every = [t for s in self.sets for t in s.truths]
        if self.other_weights:
            every += self.other_weights.truths
        if self.moved_constants:
            every += self.moved_constants.truths
        for truth in every:
            for precision in dropped:
                truth.bounds.pop(precision, None)

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)


def _draft(given: InputSet, outputs: list[ReferenceRun]) -> _Draft:
    """Move an input set to shared memory."""
    shared = [share(t) for t in tensors_of(given.inputs)]
    left = iter(shared)
    inputs = map_tensors(lambda _: next(left).tensor, given.inputs)
    return _Draft(replace(given, inputs=inputs), outputs, shared)


def _largest(
    outputs: list[ReferenceRun] | tuple[ReferenceRun, ...],
    start: dict[Precision, Deviation] | None = None,
) -> dict[Precision, Deviation]:
    """The largest deviation in each class over several runs: a single one may be lucky."""
    largest = dict(start or {})
    for output in outputs:
        for precision, found in output.by_class.items():
            largest[precision] = found.or_worse(largest.get(precision, found))
    return largest


def _bytes(tensors: Mapping[str, torch.Tensor]) -> int:
    return sum(t.nbytes for t in tensors.values())


def _over_all(largest: list[dict[Precision, Deviation]]) -> dict[Precision, float]:
    return {p: max(by_class[p].norm for by_class in largest) for p in largest[0]}


def _is_short(device: str) -> bool:
    """Return True if this process has taken its share of a GPU's memory, or others leave little."""
    room = room_on(device)
    return room.held > _MEMORY_SHARE * room.total or room.free < _LEAST_FREE * room.total


def _are_huge(outputs: list[ReferenceRun], device: str) -> bool:
    """Return True for truths of which a GPU has room for few."""
    taken = sum(output.value.nbytes for output in outputs)
    return 0 < _HUGE_SHARE * room_on(device).total < taken


def _are_finite(outputs: list[ReferenceRun], device: str) -> bool:
    return all(all_finite(output.value, torch.device(device)) for output in outputs)
