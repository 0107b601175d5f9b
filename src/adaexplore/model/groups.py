"""The modules of a model in groups that are alike, and the reasons to leave a group out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from torch import nn

from adaexplore.model.profile import CallProfile, ModuleTime
from adaexplore.model.seen import Form, Seen
from adaexplore.problems.graph_source import state_of

_MOST_OPERATIONS = 96
"""A module with more is a program of many kernels, and its parts are problems of their own."""
_LEAST_SHARE = 0.01
_NOTHING = ModuleTime(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Group:
    """Modules of one class with equal tensors, settings and forms of calls.

    `share` is the part of the model's time that is spent in them, inner modules included, and
    `own_share` the part without these; both are means over the model's calls. `forms` counts the
    calls of all members by their form, the most frequent first. `reason` says why the group cannot
    be searched, and is empty for one that may be.
    """

    kind: str
    paths: tuple[str, ...]
    forms: Mapping[Form, int]
    share: float
    own_share: float
    operations: int
    reason: str = ""

    @property
    def calls(self) -> int:
        """The number of calls of all members."""
        return sum(self.forms.values())

    def overlaps(self, other: Group) -> bool:
        """Return whether a module of one group lies inside a module of the other."""
        return any(
            _is_inside(one, two) or _is_inside(two, one)
            for one in self.paths
            for two in other.paths
        )


def group_modules(
    model: nn.Module,
    seen: Mapping[str, Seen],
    profiles: Sequence[CallProfile],
    changed: Collection[str] = (),
) -> list[Group]:
    """Return the groups of the modules that were called, the largest share first.

    `changed` are the names of the buffers and attributes that calls of the model change.
    """
    modules = dict(model.named_modules())
    alike: dict[object, list[str]] = defaultdict(list)
    for path in seen:
        if path:
            alike[_likeness(modules[path], seen[path])].append(path)
    found = [_group(model, tuple(paths), seen, profiles, changed) for paths in alike.values()]
    return sorted(found, key=lambda group: -group.share)


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
    paths: tuple[str, ...],
    seen: Mapping[str, Seen],
    profiles: Sequence[CallProfile],
    changed: Collection[str],
) -> Group:
    modules = dict(model.named_modules())
    share = _share(profiles, paths, own=False)
    operations = max(seen[path].operations for path in paths)
    reason = "computes nothing" if operations == 0 else ""
    if operations > _MOST_OPERATIONS:
        reason = f"{operations} operations are too many for one kernel; its parts are looked at"
    for path in paths:
        reason = reason or _reason(model, path, modules[path], seen[path], changed)
    if not reason and share < _LEAST_SHARE:
        reason = f"takes less than {_LEAST_SHARE:.0%} of the time"
    return Group(
        kind=type(modules[paths[0]]).__name__,
        paths=paths,
        forms=forms_of(paths, seen),
        share=share,
        own_share=_share(profiles, paths, own=True),
        operations=operations,
        reason=reason,
    )


def _share(profiles: Sequence[CallProfile], paths: Sequence[str], *, own: bool) -> float:
    return fmean(
        sum(_time(one.modules.get(path, _NOTHING), own) for path in paths) / one.time_us
        for one in profiles
    )


def _time(time: ModuleTime, own: bool) -> float:
    return time.own_us if own else time.time_us


def _reason(
    model: nn.Module, path: str, module: nn.Module, seen: Seen, changed: Collection[str]
) -> str:
    """Return why no kernel can take the place of a module, empty where one can."""
    for name, inner in module.named_modules():
        if has_hooks(inner):
            return f"{_joined(path, name)} has a hook, which a kernel would leave out; remove it"
        if "forward" in vars(inner):
            return f"the forward of {_joined(path, name)} was replaced on the object"
    for name in changed:
        if _is_inside(name, path):
            return f"a call changes {name}, which a kernel would leave out"
    if seen.opaque:
        return f"an argument is of type {seen.opaque[0]}, not a tensor or a constant"
    if seen.writes:
        return "a call writes to a tensor that it is given outside of a static cache"
    return _tied(model, path, module)


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


def _tied(model: nn.Module, path: str, module: nn.Module) -> str:
    own = {id(tensor): name for name, tensor in state_of(module).items()}
    for name, tensor in state_of(model).items():
        if id(tensor) in own and not _is_inside(name, path):
            return f"{_joined(path, own[id(tensor)])} is tied to {name}, outside of it"
    return ""


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if name else path


def _is_inside(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}.")
