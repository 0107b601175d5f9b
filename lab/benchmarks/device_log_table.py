"""Say what a GPU was held for, and who kept those waiting who would time on it.

python lab/benchmarks/device_log_table.py FOLDER       # ADAEXPLORE_DEVICE_LOG of its processes
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_ROWS = 15


@dataclass(frozen=True, slots=True)
class Span:
    """A hold of the device's lock, or a wait for it."""

    began: float
    seconds: float
    exclusive: bool
    calls: list[str]

    @property
    def ended(self) -> float:
        """When it ended."""
        return self.began + self.seconds

    def place(self, depth: int = 4) -> str:
        """The functions that it was for, without lines."""
        return " < ".join(call.rpartition(":")[0] for call in self.calls[:depth])


def spans(folder: Path, kind: str) -> list[Span]:
    """Read the spans of a kind of all processes, in their order."""
    lines = (line for file in folder.glob(f"{kind}.*") for line in file.read_text().splitlines())
    return sorted((Span(*json.loads(line)) for line in lines), key=lambda span: span.began)


def blamed(held: Iterable[Span], waits: Iterable[Span]) -> Mapping[str, float]:
    """Return the seconds for which a wait for the device alone was for those that shared it.

    Each is counted from the end of the last exclusive hold within it, and put down to the sharer
    that ended last.
    """
    held = list(held)
    alone, shared = ([h for h in held if h.exclusive == e] for e in (True, False))
    found = defaultdict[str, float](float)
    for wait in waits:
        if not wait.exclusive:
            continue
        since = max([h.ended for h in alone if wait.began < h.ended <= wait.ended], default=0.0)
        since = max(since, wait.began)
        until = [h for h in shared if h.began < wait.ended and since < h.ended <= wait.ended + 0.05]
        if until:
            last = max(until, key=lambda h: h.ended)
            found[last.place()] += wait.ended - since
    return found


def main() -> None:
    """Print the tables."""
    folder = Path(sys.argv[1])
    held, waits = spans(folder, "held"), spans(folder, "waited")
    span_s = max(h.ended for h in held) - min(h.began for h in held)
    alone = defaultdict[str, float](float)
    for each in held:
        alone[each.place()] += each.seconds if each.exclusive else 0.0
    _print(f"held alone: {sum(alone.values()):.0f} of {span_s:.0f} s", alone)
    late = blamed(held, waits)
    _print(f"kept waiting by those that share it: {sum(late.values()):.0f} s", late)


def _print(title: str, seconds: Mapping[str, float]) -> None:
    print(f"\n{title}")
    for place, each_s in sorted(seconds.items(), key=lambda item: -item[1])[:_ROWS]:
        if each_s >= 0.05:
            print(f"{each_s:8.1f} s  {place}")


if __name__ == "__main__":
    main()
