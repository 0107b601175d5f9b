"""A correct candidate's descriptor, from what was compiled, launched, profiled and estimated.

What its process says of launches and code can be forged, so nothing here decides a verdict.
docs/evaluator.md says what is safe to do with the hash of the code.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adaexplore.core.descriptor import Descriptor
from adaexplore.core.evaluation import Profile, Roofline
from adaexplore.evaluate.kernels.instructions import of_source
from adaexplore.languages.fingerprint import fingerprint

_LEAST_SHARE = 0.01
"""Kernels with less of the time are not part of how the work is divided."""

_CHARS = 80


@dataclass(frozen=True, slots=True)
class OwnKernels:
    """A candidate's own Triton kernels: hashes of their code by name, and what they use."""

    codes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    instructions: frozenset[str] = frozenset()

    @classmethod
    def of(cls, kernels: Iterable[tuple[str, str, Iterable[str]]]) -> OwnKernels:
        """From the name, the code's hash and the instructions of each."""
        codes, instructions = defaultdict[str, list[str]](list), set[str]()
        for name, code, used in kernels:
            codes[name].append(code)
            instructions |= set(used)
        return cls(dict(codes), frozenset(instructions))


@dataclass(frozen=True, slots=True)
class Part:
    """A kernel's part of a call: its `time_us`; launches; grid and block of a GPU's kernel."""

    own: bool
    time_us: float
    launches: float = 1.0
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()


def read_launched(reply: Mapping[str, Any]) -> OwnKernels:
    """What the candidate's process says it launched; nothing where that makes no sense."""
    kernels = []
    for kernel in reply["kernels"]:
        match kernel:
            case {"name": str(name), "code": str(code), "instructions": [*used]} if all(
                isinstance(each, str) for each in used
            ):
                kernels.append((name[:_CHARS], code[:_CHARS], [each[:_CHARS] for each in used]))
            case _:
                return OwnKernels()
    return OwnKernels.of(kernels)


def code_of_candidate(source: str, own: OwnKernels) -> str:
    """What it shares with candidates that come to the same (see `Descriptor.code`)."""
    return fingerprint(source, own.codes)


def describe(source: str, own: OwnKernels, parts: Sequence[Part], bytes_per_s: float) -> Descriptor:
    """The descriptor; instructions are read from the source where no kernel's are known."""
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
    """The parts of a call that was profiled."""
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
    """Bytes a second of a measured candidate; 0 where nobody knows the problem's."""
    return roofline.bytes_per_s if roofline else 0.0


def _shares(parts: Iterable[Part], total: float) -> tuple[float, ...]:
    """Of the time, largest first."""
    shares = [part.time_us / total for part in parts] if total else []
    return tuple(sorted((round(s, 3) for s in shares if s >= _LEAST_SHARE), reverse=True))
