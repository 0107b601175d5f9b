"""Every knob of a search, stated once, with the published Level 2 defaults."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adaexplore.core.errors import BadInputError

PolicyName = Literal[
    "uct",
    "widening",
    "ps",
    "irs",
    "irl",
    "irb",
    "irle",
    "beam",
    "islands",
    "polca",
    "archive",
]

FOUNDERS = 8
"""As many as are worth their steps in a long search, by simulation (docs/search.md)."""
_FEWEST_FOUNDERS = 2
_FOUNDERS_SHARE = 0.4


class Settings(BaseModel):
    """Hyperparameters of a run; `--set key=value` changes one."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    policy: Literal["auto"] | PolicyName = Field(
        "auto",
        description=f"what grows where: {', '.join(get_args(PolicyName))}; auto is archive, and "
        "uct with the published reward",
    )
    c: float = Field(0.3, ge=0, description="UCT exploration constant")
    expand_ratio: float = Field(1.0, ge=0, description="weight of expanding against descending")
    alpha: float = Field(0.0, ge=0, le=1, description="value of a subtree: 1 = max, 0 = mean")
    p_large: float = Field(0.2, ge=0, le=1, description="chance of a large step below the root")
    small_limit: int = Field(2, ge=0, description="small children of a node before it goes large")
    pool_size: int = Field(5, ge=1, description="representative kernels shown to a large step")
    extra_max: int = Field(0, ge=0, description="kernels of other components added to a small pool")
    extra_p: float = Field(0.5, gt=0, lt=1, description="p of the truncated geometric for extras")
    founders: int = Field(
        0,
        ge=0,
        description="archive: so many large steps from nothing come first (0: two fifths of the "
        "planned steps, from 2 to 8)",
    )
    window: int = Field(5, ge=1, description="recent kernels shown to a small step")
    reviser: bool = Field(True, description="small steps ask for the most important changes first")
    repair: bool = Field(True, description="a small step on a kernel that failed mends it first")
    p_strategy: float = Field(
        0.3, ge=0, le=1, description="chance that a large step chooses a named strategy first"
    )
    p_contrast: float = Field(
        0.2, ge=0, le=1, description="chance that a large step contrasts two kernels of its pool"
    )
    ask_again: bool = Field(
        True, description="a reply that no module can be made of is asked for once more"
    )
    memory_tokens: int = Field(
        600, ge=0, description="about how many tokens of rules from memory a prompt has at most"
    )
    demand: str = Field(
        "", max_length=2000, description="what models are asked to have every kernel do, in words"
    )
    lint: bool = Field(
        True, description="a model is told which rules its candidate breaks before it is evaluated"
    )
    compiler_seeds: int = Field(
        0, ge=0, description="first steps that the compiler proposes, for the models to beat"
    )
    reward: Literal["log", "published"] = Field(
        "log", description="log-speedup without ceiling, or the paper's reward (clipped at 10x)"
    )
    credit: Literal["shrunk", "measured"] = Field(
        "shrunk",
        description="what a measurement counts for in the tree: the noisier, the nearer to its "
        "parent's; or as it is, as ever with the published reward",
    )
    recheck: bool = Field(
        True,
        description="measure once more what would take the lead, and count the slower of the two; "
        "never with the published reward",
    )
    timeout_s: float = Field(180.0, gt=0, le=1e6, description="wall-clock limit of one evaluation")
    propose_timeout_s: float = Field(
        300.0, gt=0, le=1e6, description="wall-clock limit of one proposal"
    )
    memory_gb: float = Field(
        16.0, gt=0, le=1e6, description="memory limit of a candidate on the CPU"
    )
    ask_expires_h: float = Field(
        168.0, gt=0, le=1e6, description="hours after which an ask that nobody answered ends"
    )
    outage_patience_s: float = Field(
        3600.0, ge=0, le=1e6, description="how long a run waits for a model that is out of reach"
    )
    stop_near: float = Field(
        0.0, ge=0, le=1, description="stop at this share of the roofline (0: never; campaigns: 0.9)"
    )
    stop_flat: int = Field(
        0, ge=0, description="stop after so many steps that gain nothing (0: never; campaigns: 40)"
    )
    stop_flat_gain: float = Field(
        0.01, ge=0, le=1, description="what those steps gain together counts as nothing below this"
    )
    tune_steps: int = Field(
        0, ge=0, description="variants of the winner's numbers to try after the planned steps"
    )
    confirm: bool = Field(
        True, description="re-measure the best at the end, each in a fresh process"
    )
    confirm_top: int = Field(
        3, ge=1, description="how many at most, while any of them might be the winner"
    )

    @property
    def chosen_policy(self) -> PolicyName:
        """The policy that is meant: the published reward asks for the published search."""
        if self.policy != "auto":
            return self.policy
        return "uct" if self.reward == "published" else "archive"

    def for_steps(self, steps: int) -> Settings:
        """The settings of a search of so many planned steps."""
        if self.founders:
            return self
        founders = max(math.ceil(_FOUNDERS_SHARE * steps), _FEWEST_FOUNDERS)
        return self.model_copy(update={"founders": min(founders, FOUNDERS)})

    @property
    def shrinks(self) -> bool:
        """Whether the tree counts a noisy measurement for less."""
        return self.credit == "shrunk" and self.reward != "published"

    @property
    def rechecks(self) -> bool:
        """Whether what would take the lead is measured once more."""
        return self.recheck and self.reward != "published"


def parse_settings(pairs: Iterable[str], base: Settings | None = None) -> Settings:
    """Settings from `key=value` texts on top of `base`.

    Raises `BadInputError` for a text without `=`, an unknown key (naming the near ones), or a value
    out of bounds.
    """
    values: dict[str, Any] = (base or Settings()).model_dump()
    for key, value in parse_pairs(pairs):
        if key not in Settings.model_fields:
            near = difflib.get_close_matches(key, Settings.model_fields, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(values)}"
            raise BadInputError(f"--set {key}: no such setting; {hint}")
        values[key] = value
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise BadInputError(f"--set {name}={first['input']}: {first['msg']}") from None


def parse_pairs(pairs: Iterable[str]) -> list[tuple[str, str]]:
    """Keys with their values; raises `BadInputError` for a text without `=`."""
    found = []
    for pair in pairs:
        key, sep, value = pair.partition("=")
        if not sep:
            raise BadInputError(f"--set {pair!r}: write it as key=value, for example --set c=0.5")
        found.append((key.strip(), value.strip()))
    return found
