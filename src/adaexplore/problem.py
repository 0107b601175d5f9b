"""A problem: the reference module that candidates must match and beat."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Language = Literal["triton", "cuda", "helion", "cpp"]
Precision = Literal["fp32", "tf32", "half"]
Mode = Literal["as-built", "train", "eval"]
TargetName = Literal["sm_80", "sm_90", "sm_100"]

LANGUAGES: tuple[Language, ...] = get_args(Language)
PRECISIONS: tuple[Precision, ...] = get_args(Precision)  # strictest first
TARGET_NAMES: tuple[TargetName, ...] = get_args(TargetName)


@dataclass(frozen=True, slots=True)
class Problem:
    """A PyTorch reference in KernelBench form, and what is asked of a candidate.

    `source` defines `Model`, `get_inputs()` and optionally `get_init_inputs()`. `device` is `"cpu"`
    or `"cuda:<index>"`. `precision` is the loosest class a candidate may have. `seed` fixes weights
    and inputs. `mode` says whether the reference runs as its constructor leaves it (KernelBench's
    habit, which is training mode), or is put into train or eval mode first. `target` is set on the
    CPU only: the GPU that kernels are compiled for where there is none to measure on.
    With `require_custom`, a candidate whose own kernels do not do the work is no result.
    """

    name: str
    source: str
    language: Language
    device: str
    precision: Precision = "fp32"
    seed: int = 0
    mode: Mode = "as-built"
    target: TargetName | None = None
    require_custom: bool = False

    @property
    def digest(self) -> str:
        """Content hash of everything that decides a verdict."""
        parts = [self.source, self.language, self.precision, str(self.seed), self.mode]
        parts += [self.target] if self.target else []
        parts += ["require_custom"] if self.require_custom else []
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Problem:
        """Inverse of `to_json`."""
        return Problem(**data)
