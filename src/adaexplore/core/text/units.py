"""Formats of numbers for people, the same everywhere."""

from __future__ import annotations

import math

_BYTES_PER_TOKEN = 3.5  # a rule of thumb for source code; tokenizers differ by a third


def speedup(ratio: float) -> str:
    """Format a speedup such as `2.31×`; near 1, where the third decimal decides, with three."""
    return f"{_ratio(ratio)}×"


def interval(bounds: tuple[float, float]) -> str:
    """Format a speedup's 95 % interval such as `2.24–2.38`."""
    low, high = bounds
    return f"{_ratio(low)}–{_ratio(high)}"


def duration_us(time_us: float) -> str:
    """Format a time given in microseconds in its shortest unit: `312 µs`, `1.24 ms`."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if time_us >= size:
            return f"{_significant(time_us / size)} {unit}"
    return f"{_significant(time_us)} µs"


def duration_s(time_s: float) -> str:
    """Format a time given in seconds: `0.42 s`, `37 s`, `2 min 05 s`, `1 h 12 min`."""
    if time_s < 10:
        return f"{time_s:.2g} s" if time_s else "0 s"
    seconds = round(time_s)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"


def relative_error(error: float | None) -> str:
    """Format a relative error such as `1.2e-7`; empty for None."""
    if error is None:
        return ""
    if error == 0 or not math.isfinite(error):
        return f"{error:g}"
    mantissa, exponent = f"{error:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def share(part: float) -> str:
    """Format a share such as `71 %`; below one per cent with one significant digit."""
    percent = 100 * part
    return f"{percent:.0f} %" if percent >= 1 or percent == 0 else f"{percent:.1g} %"


def plural(count: int, noun: str) -> str:
    """Say how many there are, such as `1 seed` or `2 seeds`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def prompts_wait(count: int) -> str:
    """Say how many prompts wait, such as `1 prompt waits`."""
    return "1 prompt waits" if count == 1 else f"{count} prompts wait"


def amount(number: float, unit: str) -> str:
    """Format a large number with its unit, such as `3.31 TB/s` or `16.0 kB`."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{_significant(number / size)} {prefix}{unit}"
    return f"{number:.3g} {unit}"


def _ratio(ratio: float) -> str:
    if ratio >= 100:
        return f"{ratio:.0f}"
    if ratio >= 10:
        return f"{ratio:.1f}"
    if 0.9 <= ratio < 1.1:
        return f"{ratio:.3f}"
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def _significant(number: float) -> str:
    """Format three significant digits without an exponent."""
    if number >= 100:
        return f"{number:.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def estimated_tokens(text: str) -> int:
    """Estimate the number of tokens of a text in a prompt; only the provider knows exactly."""
    return round(len(text.encode(errors="replace")) / _BYTES_PER_TOKEN)
