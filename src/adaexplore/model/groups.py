"""The modules of a model in groups that are alike, and the reasons to leave a group out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from statistics import fmean

from torch import nn

from adaexplore.model.profile import CallProfile, ModuleTime
from adaexplore.model.seen import Form, Seen, alike
from adaexplore.problems.graph_source import state_of
from adaexplore.runtime.cuts import OperationRun

MOST_OPERATIONS = 96
"""A module with more is a program of many kernels, and its parts are problems of their own."""
_LEAST_SHARE = 0.01
_LITTLE = f"takes less than {_LEAST_SHARE:.0%} of the time"
_NOTHING = ModuleTime(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Group:
    """Modules of one class, or runs of equal operations, with equal tensors, settings and calls.

    A group has the calls of one kind: `forms` counts those of all members by their form, the most
    frequent first. `share` is the part of the model's time that is spent in them, inner modules
    included, and `own_share` the part without these; both are means over the model's calls.
    `reason` says why the group cannot be searched, and is empty for one that may be. `covers` has,
    for each of the paths, those of all that a kernel takes the place of.
    """

    kind: str
    paths: tuple[str, ...]
    forms: Mapping[Form, int]
    share: float
    own_share: float
    operations: int
    reason: str = ""
    covers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """The number of calls of all members."""
        return sum(self.forms.values())

    def overlaps(self, other: Group) -> bool:
        """Return whether a part of one group lies inside a part of the other.

        Calls of different kinds of the same modules do not overlap.
        """
        are_apart = not self.forms.keys() & other.forms.keys()
        return any(
            is_inside(one, two) or is_inside(two, one)
            for (path, ones), (there, twos) in product(self.covers.items(), other.covers.items())
            if not (path == there and are_apart)
            for one, two in product(ones, twos)
        )


def group_modules(
    model: nn.Module,
    seen: Mapping[str, Seen],
    profiles: Sequence[CallProfile],
    changed: Collection[str] = (),
    runs: Mapping[str, OperationRun] | None = None,
) -> list[Group]:
    """Return the groups of the modules and `runs` that were called, the largest share first.

    Equal modules are a group for each kind of calls. `changed` are the names of the buffers and
    attributes that calls of the model change.
    """
    modules = {**dict(model.named_modules()), **(runs or {})}
    equal: dict[object, list[str]] = defaultdict(list)
    for path in seen:
        if path:
            equal[_likeness(modules[path], seen[path])].append(path)
    found = [
        _group(model, modules, tuple(paths), forms, seen, profiles, changed)
        for paths in equal.values()
        for forms in alike(forms_of(paths, seen))
    ]
    return sorted(found, key=lambda group: -group.share)


def unfit_modules(
    model: nn.Module, seen: Mapping[str, Seen], changed: Collection[str] = ()
) -> set[str]:
    """Return the paths of the modules that no kernel can take the place of, and of the model."""
    modules = dict(model.named_modules())
    return {
        path
        for path, one in seen.items()
        if not path
        or one.operations > MOST_OPERATIONS
        or all(
            _reason(model, path, modules[path], one, forms, changed)
            for forms in alike(forms_of([path], seen))
        )
    }


def covers_of(path: str, module: nn.Module) -> tuple[str, ...]:
    """Return the paths of all that a kernel for a module, or a run, takes the place of."""
    if not isinstance(module, OperationRun):
        return (path,)
    home = path.rpartition(".")[0]
    return (path, *(joined(home, inner) for inner in module.paths))


def forms_of(paths: Sequence[str], seen: Mapping[str, Seen]) -> dict[Form, int]:
    """Count the calls of modules by their form, the most frequent first."""
    forms: Counter[Form] = Counter()
    for path in paths:
        for counted in seen[path].forms.values():
            forms.update(counted)
    return dict(forms.most_common())


def typical(paths: Sequence[str], seen: Mapping[str, Seen]) -> str:
    """Return the first of some modules whose inputs lie in memory as those of most of them do.

    A kernel copies inputs that lie otherwise than those that it was verified with.
    """
    layouts = Counter(seen[path].strides for path in paths)
    return max(paths, key=lambda path: layouts[seen[path].strides])


def _likeness(module: nn.Module, seen: Seen) -> object:
    tensors = tuple((name, t.shape, t.dtype) for name, t in state_of(module).items())
    forms = frozenset(form for counted in seen.forms.values() for form in counted)
    return type(module), tensors, repr(module), forms


def _group(
    model: nn.Module,
    modules: Mapping[str, nn.Module],
    paths: tuple[str, ...],
    forms: Mapping[Form, int],
    seen: Mapping[str, Seen],
    profiles: Sequence[CallProfile],
    changed: Collection[str],
) -> Group:
    first = modules[paths[0]]
    operations = max(seen[path].operations for path in paths)
    reason = "computes nothing" if operations == 0 else ""
    if operations > MOST_OPERATIONS:
        reason = f"{operations} operations are too many for one kernel; its parts are looked at"
    for path in paths:
        reason = reason or _reason(model, path, modules[path], seen[path], forms, changed)
    group = Group(
        kind=_kind(model, paths[0], first),
        paths=paths,
        forms=forms,
        share=0.0,
        own_share=0.0,
        operations=operations,
        reason=reason,
        covers={path: covers_of(path, modules[path]) for path in paths},
    )
    group = with_times(group, seen, profiles)
    if not group.reason and isinstance(first, OperationRun):
        return replace(group, reason=_adds_little(first, group, seen, profiles))
    return group


def _kind(model: nn.Module, path: str, module: nn.Module) -> str:
    """Return the name of a module's class, for a run with that of the module that it lies in."""
    if not isinstance(module, OperationRun):
        return type(module).__name__
    home, _, label = path.rpartition(".")
    return f"{type(model.get_submodule(home)).__name__}.{label}"


def with_times(group: Group, seen: Mapping[str, Seen], profiles: Sequence[CallProfile]) -> Group:
    """Return a group with the shares of its calls, and the reason if they are too small."""
    share = _share(group, seen, profiles, lambda path, one: _at(path, one).time_us)
    own_share = _share(group, seen, profiles, lambda path, one: _at(path, one).own_us)
    reason = group.reason or (_LITTLE if share < _LEAST_SHARE else "")
    return replace(group, share=share, own_share=own_share, reason=reason)


def outside(
    group: Group, chosen: Sequence[Group], seen: Mapping[str, Seen], profiles: Sequence[CallProfile]
) -> Group | None:
    """Return the members of a group that lie in none of the chosen; None for none or all."""
    covers = {
        path: parts
        for path, parts in group.covers.items()
        if not any(replace(group, covers={path: parts}).overlaps(one) for one in chosen)
    }
    if not covers or covers == group.covers:
        return None
    paths = tuple(covers)
    forms = {form: n for form, n in forms_of(paths, seen).items() if form in group.forms}
    return with_times(replace(group, paths=paths, covers=covers, forms=forms), seen, profiles)


def _adds_little(
    run: OperationRun, group: Group, seen: Mapping[str, Seen], profiles: Sequence[CallProfile]
) -> str:
    """Return why one of the modules in a run is searched instead of it, empty where it is not."""
    for inner in run.paths:

        def time_us(path: str, one: CallProfile, inner: str = inner) -> float:
            return _at(joined(path.rpartition(".")[0], inner), one).time_us

        if group.share - _share(group, seen, profiles, time_us) < _LEAST_SHARE:
            return f"takes less than {_LEAST_SHARE:.0%} of the time beside {inner}"
    return ""


def _share(
    group: Group,
    seen: Mapping[str, Seen],
    profiles: Sequence[CallProfile],
    time_us: Callable[[str, CallProfile], float],
) -> float:
    """Return the part of the model's time that a group takes with the calls of its forms."""
    return fmean(
        sum(_part(seen[path], one.name, group.forms) * time_us(path, one) for path in group.paths)
        / one.time_us
        for one in profiles
    )


def _part(seen: Seen, call: str, forms: Collection[Form]) -> float:
    """Return the part of the calls of a module, in one call of the model, that have these forms."""
    counted = seen.forms.get(call, Counter())
    return sum(counted[form] for form in forms) / max(counted.total(), 1)


def _at(path: str, one: CallProfile) -> ModuleTime:
    return one.modules.get(path, _NOTHING)


def _reason(
    model: nn.Module,
    path: str,
    module: nn.Module,
    seen: Seen,
    forms: Collection[Form],
    changed: Collection[str],
) -> str:
    """Return why no kernel can take the place of a module in calls, empty where one can."""
    covers = covers_of(path, module)
    home = path.rpartition(".")[0] if isinstance(module, OperationRun) else path
    for name, inner in module.named_modules():
        if has_hooks(inner):
            return f"{joined(home, name)} has a hook, which a kernel would leave out; remove it"
        if "forward" in vars(inner):
            return f"the forward of {joined(home, name)} was replaced on the object"
    for name in changed:
        if any(is_inside(name, each) for each in covers):
            return f"a call changes {name}, which a kernel would leave out"
    for form in forms:
        if form in seen.opaque:
            return f"an argument is of type {seen.opaque[form]}, not a tensor or a constant"
    if seen.writes.intersection(forms):
        return "a call writes to a tensor that it is given outside of a static cache"
    return _tied(model, home, covers, module)


def has_hooks(module: nn.Module) -> bool:
    """Return whether a call of a module, not of those inside it, or its gradients run hooks."""
    return any(
        (
            module._forward_hooks,
            module._forward_pre_hooks,
            module._backward_hooks,
            module._backward_pre_hooks,
        )
    )


def _tied(model: nn.Module, home: str, covers: Sequence[str], module: nn.Module) -> str:
    own = {id(tensor): name for name, tensor in state_of(module).items()}
    for name, tensor in state_of(model).items():
        if id(tensor) in own and not any(is_inside(name, each) for each in covers):
            return f"{joined(home, own[id(tensor)])} is tied to {name}, outside of it"
    return ""


def joined(path: str, name: str) -> str:
    """Return the path of a module inside another."""
    return f"{path}.{name}".strip(".")


def is_inside(path: str, other: str) -> bool:
    """Return whether a path is another, or inside it."""
    return path == other or path.startswith(f"{other}.")
