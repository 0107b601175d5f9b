"""Platforms and gains of rules in words."""

from __future__ import annotations

from adaexplore.core.rule import Gain, Platform


def describe_gain(gain: Gain) -> str:
    """Return the speedup of a speed rule's remedy, with its interval and platform."""
    low, high = gain.speedup_ci
    return f"{gain.speedup:.3g}x ({low:.3g} to {high:.3g}) on {describe_platform(gain.where)}"


def describe_platform(platform: Platform) -> str:
    """Return a platform in words."""
    place = " ".join(filter(None, [platform.target, platform.gpu]))
    return f"Triton {platform.triton} for {place}"
