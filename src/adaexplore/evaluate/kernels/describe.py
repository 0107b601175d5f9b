"""The descriptor of a correct candidate, from its compilation, launches, profile and estimate.

The candidate's process can forge its launches and code, so this module decides no verdict.
docs/evaluator.md lists the safe uses of the code's hash.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from adaexplore.core.verdict.descriptor import Descriptor
from adaexplore.core.verdict.evaluation import Profile, Roofline
from adaexplore.evaluate.kernels.instructions import of_source
from adaexplore.evaluate.wire.kernel_messages import LaunchedKernels
from adaexplore.languages.fingerprint import fingerprint

_MIN_SHARE = 0.01
"""Kernels with a smaller share of the time are not listed."""

_CHARS = 80


@dataclass(frozen=True, slots=True)
class OwnKernels:
    """A candidate's own Triton kernels: hashes of their code by name, and their instructions."""

    codes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    instructions: frozenset[str] = frozenset()

    @classmethod
    def of(cls, kernels: Iterable[tuple[str, str, Iterable[str]]]) -> OwnKernels:
        """Combine the name, the code's hash and the instructions of each kernel."""
        codes, instructions = defaultdict[str, list[str]](list), set[str]()
        for name, code, used in kernels:
            codes[name].append(code)
            instructions |= set(used)
        return cls(dict(codes), frozenset(instructions))


@dataclass(frozen=True, slots=True)
class Part:
    """A kernel's part of a call: time, launches, and (on a GPU) its grid and block."""

    own: bool
    time_us: float
    launches: float = 1.0
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()


def read_launched(reply: LaunchedKernels) -> OwnKernels:
    """Return the launched kernels as the candidate's process reports them."""
    return OwnKernels.of(
        (kernel.name[:_CHARS], kernel.code[:_CHARS], [i[:_CHARS] for i in kernel.instructions])
        for kernel in reply.kernels
    )


def code_of_candidate(source: str, own: OwnKernels) -> str:
    """Return the hash that candidates with the same compiled code share (see `Descriptor.code`)."""
    return fingerprint(source, own.codes)


def describe(source: str, own: OwnKernels, parts: Sequence[Part], bytes_per_s: float) -> Descriptor:
    """Return the descriptor; its instructions come from the source if no kernel is known."""
    total = sum(part.time_us for part in parts)
    main = max((part for part in parts if part.own), key=lambda part: part.time_us, default=None)
    return Descriptor(
        own=_shares((part for part in parts if part.own), total),
        library=_shares((part for part in parts if not part.own), total),
        launches=round(sum(part.launches for part in parts), 3),
        grid=main.grid if main else (),
        block=main.block if main else (),
        bytes_per_s=bytes_per_s if math.isfinite(bytes_per_s) else 0.0,
        instructions=tuple(sorted(own.instructions if own.codes else of_source(source))),
        form=fingerprint(source),
        code=code_of_candidate(source, own),
    )


def measured_parts(profile: Profile | None) -> list[Part]:
    """Return the parts of a profiled call."""
    return [
        Part(
            use.origin == "custom",
            use.time_us,
            use.launches,
            use.launch.grid if use.launch else (),
            use.launch.block if use.launch else (),
        )
        for use in (profile.kernels if profile else ())
    ]


def traffic(roofline: Roofline | None) -> float:
    """Return the bytes per second of a measured candidate; 0 without a roofline."""
    return roofline.bytes_per_s if roofline else 0.0


def _shares(parts: Iterable[Part], total: float) -> tuple[float, ...]:
    """Return the shares of the time, largest first."""
    shares = [part.time_us / total for part in parts] if total else []
    return tuple(sorted((round(s, 3) for s in shares if s >= _MIN_SHARE), reverse=True))
