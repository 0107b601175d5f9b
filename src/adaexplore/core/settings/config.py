"""The configuration of a run: every option and setting, with its default, bounds and meaning.

The command line, `--set`, campaign files, the MCP tools, the keywords of `adaexplore.optimize` and
the command that reproduces a run are derived from the fields of `Config`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, field_validator, model_validator

from adaexplore.core.problem import Checks, Language, Mode, Precision, TargetName
from adaexplore.core.settings.config_fields import (
    CachePlace,
    DatabaseUrl,
    JoinedText,
    PathText,
    RayAddress,
    option,
    plain,
    setting,
    split,
)
from adaexplore.core.settings.limits import BudgetLimits, parse_budget
from adaexplore.core.settings.policies import (
    AUTO,
    PARAMETERS,
    PolicyName,
    join_policy,
    parse_policy,
    split_policy,
)
from adaexplore.core.settings.presets import PRESETS, PresetName

Allocation = Literal["headroom", "uniform"]
Feedback = Literal["full", "verdict"]
_SHOWING_NOTHING_ELSE = ("ps", "irs", "irl", "irb", "irle")
"""The paper's baselines: their prompts have the kernels of their context alone."""

FOUNDERS = 8
"""Large steps from the reference that a long search should begin with, by simulation
(docs/search.md)."""
DEFAULT_STEPS = 20
CONCURRENCY = 8
"""Calls in flight at one provider, where neither `concurrency` nor `parallel` allows more."""
CAMPAIGN_DEFAULTS: Mapping[str, float] = {"stop_near": 0.9, "stop_flat": 40}
"""Defaults of a campaign that differ: a search with little left to gain ends, and its steps go to
the other problems."""
_FEWEST_FOUNDERS = 2
_FOUNDERS_SHARE = 0.4


class Config(BaseModel):
    """Configuration of a run, of a campaign, or of one evaluation.

    Fields that were given are in `model_fields_set`. Raises pydantic's `ValidationError` for a
    value out of bounds; `make_config` turns it into one line.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    language: Language | None = option(
        "problem",
        None,
        "language of the kernels. Default: triton on a GPU, cpp on the CPU. cuda is CUDA C++ on a "
        "GPU and needs nvcc",
    )
    device: JoinedText | None = option(
        "problem",
        None,
        "device: cpu, cuda or cuda:<index>; in a campaign, several by commas. Default: a GPU if "
        "there is one",
    )
    ray: RayAddress = option(
        "problem",
        "",
        "Ray cluster whose devices judge, as HOST:PORT, or auto for the one that this machine is a "
        "node of; a search uses as many devices as --parallel",
        metavar="ADDRESS",
    )
    ray_kind: str = setting(
        "problem",
        "",
        "kind of device of the Ray cluster, as Ray names it (H100). Default: the kind of GPU that "
        "the cluster has most of",
    )
    ray_patience_s: float = setting(
        "problem",
        600.0,
        "seconds that a run waits for a device of the Ray cluster, while it has none",
        gt=0,
        le=1e6,
    )
    target: TargetName | None = option(
        "problem",
        None,
        "judge Triton without a GPU (--device cpu --language triton): the architecture to compile "
        "for. Kernels are interpreted on small sizes; times are estimated, not measured. Default "
        "there: sm_90",
    )
    precision: Precision = option(
        "problem",
        "fp32",
        "the loosest precision class allowed: fp32 is strict, tf32 lets matrix products use TF32, "
        "half is autocast's. Baselines run in the same class",
    )
    mode: Mode = option(
        "problem",
        "as-built",
        "mode of the reference: as-built leaves it as its constructor does, which is training mode "
        "for most modules of libraries (dropout drops, batch norm uses batch statistics); eval is "
        "inference, train is training",
    )
    seed: int = option(
        "problem", 0, "fixes weights, inputs and the choices of the search", ge=0, lt=2**31
    )
    inputs_seed: int | None = setting(
        "problem",
        None,
        "seed of weights and inputs alone, where several searches share a reference. Default: seed",
        ge=0,
        lt=2**31,
    )
    require_custom: bool = option(
        "problem",
        False,
        "reject candidates whose own kernels do not do the work (cuBLAS, cuDNN or PyTorch's "
        "kernels do); without it they are labelled. Needs a GPU, or --target",
    )
    allow_waiting: bool = option(
        "problem",
        False,
        "claim kernels whose blocks wait for other blocks of a launch that is not cooperative, "
        "and that hang where not all blocks run at once; without it they are labelled and never "
        "the winner",
    )
    with_backward: bool = option(
        "problem",
        False,
        "judge and time a training step: forward, then the gradients of inputs and parameters for "
        "given gradients of the outputs. Baselines compile the same step",
    )
    allow: Annotated[tuple[PathText, ...], BeforeValidator(split)] = option(
        "problem",
        (),
        "a file or folder that the reference reads when it runs; repeatable. Candidates may read "
        "it too",
        metavar="PATH",
    )

    definition: str = option("problem", "", "definition of the dataset PROBLEM", metavar="NAME")
    workloads: JoinedText = option(
        "problem", "", "its workloads to be right on: all, a number, or UUIDs", metavar="WHICH"
    )
    timed: JoinedText = option(
        "problem", "", "those of them whose time counts, likewise", metavar="WHICH"
    )

    model: Annotated[tuple[str, ...], BeforeValidator(split)] = option(
        "model",
        (),
        "a language model, such as openai:gpt-5-mini or anthropic:NAME; its key is read from the "
        "provider's variable (OPENAI_API_KEY, ANTHROPIC_API_KEY, ...). Repeatable: steps go to the "
        "models that gain most",
        metavar="PROVIDER:NAME",
    )
    proposer: Literal["compiler", "manual"] | None = option(
        "model",
        None,
        "compiler: TorchInductor, which needs no model and may stand beside models. manual: you or "
        "an agent answer the prompts (ask, tell). Default: compiler if there is no model",
    )
    prompts: PathText = option(
        "model", "", "folder of your own prompt templates, in place of some or all", metavar="DIR"
    )
    memory: Annotated[str, BeforeValidator(plain)] = option(
        "model",
        "",
        "rules for the prompts: a memory's file, bundled or none. Default: bundled for Triton, "
        "else none",
        metavar="MEMORY",
    )
    memory_update: PathText = option(
        "model",
        "",
        "memory file that gets rules made of failures; the first model writes them. A search "
        "learns at its end; a campaign after every turn, and later turns see the new rules. "
        "Several runs may update one memory",
        metavar="FILE",
    )
    record: PathText = option(
        "model", "", "folder that keeps every reply of the models, for --replay", metavar="DIR"
    )
    replay: PathText = option(
        "model", "", "folder of recorded replies to use; no model is asked", metavar="DIR"
    )
    base_url: str = option("model", "", "server of an openai-compatible:MODEL", metavar="URL")
    temperature: float | None = setting(
        "model",
        None,
        "sampling temperature of the models. Default: the provider's. A model that takes none is "
        "refused",
        ge=0,
        le=2,
    )
    reply_tokens: int | None = setting(
        "model",
        None,
        "most tokens of a reply, reasoning included. Default: the provider's",
        ge=256,
        le=10**6,
    )
    reasoning: Literal["minimal", "low", "medium", "high", "xhigh", "max"] | None = setting(
        "model",
        None,
        "reasoning effort of the models; the nearest that a provider has. Default: the provider's. "
        "A model that takes none is refused",
    )
    concurrency: int | None = setting(
        "model",
        None,
        f"most calls in flight at one provider. Default: as many as `parallel`, at least "
        f"{CONCURRENCY}",
        ge=1,
        le=256,
    )
    demand: str = setting(
        "model", "", "a requirement on every kernel, in words, for the prompts", max_length=2000
    )
    memory_tokens: int = setting(
        "model", 600, "most tokens of rules from memory in a prompt, about", ge=0
    )
    reviser: bool = setting("model", True, "a small step first asks for the most important changes")
    repair: bool = setting("model", True, "a small step on a failed kernel repairs it first")
    p_strategy: float = setting(
        "model", 0.3, "probability that a large step first chooses a named strategy", ge=0, le=1
    )
    p_contrast: float = setting(
        "model", 0.2, "probability that a large step contrasts the kernels of its pool", ge=0, le=1
    )
    contrast: bool | None = setting(
        "model",
        None,
        "steps compare several correct kernels of the search before they change or write code: "
        "every large step and every reviser, or none. Default: large steps, with p_contrast",
    )
    tried: bool | None = setting(
        "model",
        None,
        "prompts list what else was tried: other steps like this one, and how many are in flight. "
        "Default: true, except with the published reward and the paper's baselines "
        f"({', '.join(_SHOWING_NOTHING_ELSE)})",
    )
    outlines: bool | None = setting(
        "model",
        None,
        "where several large steps are asked for at once, a call comes first that names another "
        "structure for each. Default: true with models; false where you answer the prompts, with "
        "contents=published, and where tried is false",
    )
    summary: bool | None = setting(
        "model",
        None,
        "a call before each step sums up the search so far for its prompt, as POLCA has it. "
        "Default: true with the policy polca",
    )
    contents: Literal["full", "published"] = setting(
        "model",
        "full",
        "what prompts tell: all that this package knows, or only what the published search shows",
    )
    feedback: Feedback = setting(
        "model",
        "full",
        "what prompts tell of a kernel's evaluation: all of it, or whether it passed or failed and "
        "nothing else (no times, messages, profiles or contrasts)",
    )
    memory_threshold: int = setting(
        "model",
        0,
        "every rule with this count or more goes whole into every prompt (0: the rules about the "
        "step's code, within memory_tokens)",
        ge=0,
    )
    ask_again: bool = setting(
        "model", True, "ask once more where a reply contains no usable module or was cut off"
    )
    unpatched: Literal["fail", "repeat"] = setting(
        "model",
        "fail",
        "a step whose patches do not apply: fails, after another try, or repeats the kernel as "
        "it was",
    )
    learning: Literal["checked", "published"] = setting(
        "model",
        "checked",
        "how failures become rules: checked keeps a rule whose witness fails and whose remedy "
        "passes; published keeps a model's sentence about each failure, unchecked, with a count",
    )
    grow: bool = setting(
        "model",
        False,
        "adapt searches one task after the other, and each sees the rules that those before it "
        "left; without it, tasks are attempted first, and the rules come at the end",
    )
    lint: bool = setting(
        "model", True, "tell the model which rules its candidate breaks, before the evaluation"
    )

    preset: PresetName | None = option(
        "search",
        None,
        "a named set of settings, recorded with the run; --set and options change single values. "
        "`adaexplore settings` lists presets",
        metavar="NAME",
    )
    steps: int | None = option(
        "search",
        None,
        f"candidates to try. Default: as the budget says, or {DEFAULT_STEPS}",
        ge=1,
        le=10**6,
    )
    parallel: int = option(
        "search",
        1,
        "steps in flight at once: proposals, compilation and measurement overlap. With more than "
        "one, the tree depends on the order of completion: the same seed need not give the same "
        "tree",
        ge=1,
        le=64,
    )
    start_from: Annotated[tuple[PathText, ...], BeforeValidator(split)] = option(
        "search",
        (),
        "a kernel to start from: a file with ModelNew, a folder of released kernels, or a run, of "
        "the published search too; repeatable. They are judged before the first step",
        metavar="PATH",
    )
    tune: int = option(
        "search", 0, "variants of the winner's numbers to try at the end; no model is asked", ge=0
    )
    allocation: Allocation = option(
        "campaign",
        "headroom",
        "the problem that gets the next steps. headroom: the one that gains most of what "
        "the roofline leaves; uniform: the one with the fewest steps",
    )
    turn_steps: int = setting("campaign", 4, "steps of one turn of a problem", ge=1)
    first_steps: int = setting("campaign", 8, "steps of every problem before any gets more", ge=1)
    policy: str = setting(
        "search",
        AUTO,
        f"what grows where: {', '.join(get_args(PolicyName))}; auto is archive, and uct with the "
        "published reward. Parameters and settings may follow: beam:width=3,p_large=0.5; "
        f"parameters of their own have {', '.join(PARAMETERS)}, as listed below",
    )
    c: float = setting("search", 0.3, "UCT exploration constant", ge=0)
    expand_ratio: float = setting(
        "search", 1.0, "weight of expanding a node against descending", ge=0
    )
    alpha: float = setting(
        "search", 0.0, "value of a subtree: 1 is the maximum, 0 the mean", ge=0, le=1
    )
    p_large: float = setting(
        "search", 0.2, "probability of a large step below the root", ge=0, le=1
    )
    small_limit: int = setting("search", 2, "small children of a node before a large step", ge=0)
    step_kinds: Literal["both", "large", "small"] = setting(
        "search",
        "both",
        "kinds of steps that a search may take, whatever the policy. small: after a first large "
        "step, since there is no kernel to change before",
    )
    pool_size: int = setting(
        "search", 5, "representative kernels shown to a large step (0: none)", ge=0
    )
    extra_max: int = setting(
        "search", 0, "kernels of other components added to a small pool, at most", ge=0
    )
    extra_p: float = setting(
        "search", 0.5, "p of the truncated geometric distribution of their number", gt=0, lt=1
    )
    founders: int = setting(
        "search",
        0,
        "initial large steps of the archive policy (0: two fifths of the planned steps, "
        f"from {_FEWEST_FOUNDERS} to {FOUNDERS})",
        ge=0,
    )
    window: int = setting("search", 5, "recent kernels shown to a small step", ge=1)
    compiler_seeds: int = setting(
        "search", 0, "first steps that the compiler proposes, for the models to beat", ge=0
    )
    reward: Literal["log", "published"] = setting(
        "search", "log", "log-speedup without a ceiling, or the paper's reward (clipped at 10x)"
    )
    compiled: Literal["kernels", "module"] = setting(
        "search",
        "kernels",
        "what has to compile before a failed candidate earns anything: all its kernels, or its "
        "module, as it is imported and constructed",
    )
    ranking: Literal["strongest", "eager"] = setting(
        "search",
        "strongest",
        "the speedup by which the tree ranks kernels: over the strongest baseline, like for like, "
        "or over eager",
    )
    repeats: Literal["visit", "step"] = setting(
        "search",
        "visit",
        "a step whose kernel is that of an earlier step: a visit without reward, or a step like "
        "any other; always a step with the published reward",
    )
    credit: Literal["shrunk", "measured"] = setting(
        "search",
        "shrunk",
        "value of a measurement in the tree: shrunk towards its parent's by its noise, or as "
        "measured; always as measured with the published reward",
    )
    recheck: bool = setting(
        "search",
        True,
        "measure a new leader once more and count the slower result; never with the published "
        "reward",
    )
    published_judge: bool = setting(
        "search",
        False,
        "the published judge gives a second verdict on every candidate, which decides nothing: 5 "
        "inputs, 5e-2, mean of 100 runs, over eager fp32",
    )
    confirm: bool = setting(
        "search", True, "measure the best again at the end, each in a fresh process"
    )
    confirm_top: int = setting(
        "search", 3, "candidates to confirm at most, while any of them might be the winner", ge=1
    )

    budget: str | None = option(
        "limits",
        None,
        "when to stop: 2usd, 500ktok, 30min, 100steps, or several by commas; in a campaign, for "
        "all problems together",
        metavar="LIMIT",
    )
    timeout_s: float = setting(
        "limits", 180.0, "wall-clock limit of one evaluation, in seconds", gt=0, le=1e6
    )
    propose_timeout_s: float = setting(
        "limits", 300.0, "wall-clock limit of one proposal, in seconds", gt=0, le=1e6
    )
    memory_gb: float = setting(
        "limits", 16.0, "memory limit of a candidate on the CPU, in GiB", gt=0, le=1e6
    )
    ask_expires_h: float = setting(
        "limits", 168.0, "hours after which an unanswered ask ends", gt=0, le=1e6
    )
    outage_patience_s: float = setting(
        "limits", 3600.0, "seconds that a run waits for an unreachable model", ge=0, le=1e6
    )
    stop_near: float = setting(
        "limits",
        0.0,
        "stop at this share of the roofline (0: never; default in a campaign: "
        f"{CAMPAIGN_DEFAULTS['stop_near']})",
        ge=0,
        le=1,
    )
    stop_flat: int = setting(
        "limits",
        0,
        "stop after this number of steps without a gain (0: never; default in a campaign: "
        f"{CAMPAIGN_DEFAULTS['stop_flat']})",
        ge=0,
    )
    stop_flat_gain: float = setting(
        "limits", 0.01, "total gain of those steps that still counts as none", ge=0, le=1
    )

    run: PathText = option(
        "output", "", "folder of the run. Default: runs/<problem>-<time>", metavar="DIR"
    )
    store: DatabaseUrl = option(
        "output",
        "",
        "PostgreSQL database for the records, as postgresql://USER@HOST/NAME. Default: run.db in "
        "the folder of the run",
        metavar="URL",
    )
    evaluation_cache: CachePlace = option(
        "output",
        "",
        "verdicts shared between runs: off, on (a file in ~/.cache/adaexplore), a file, or "
        "postgresql://USER@HOST/NAME. A kernel that was judged for the same problem, on the same "
        "hardware and software, is not judged again; winners are always measured. Default: off",
        metavar="PLACE",
    )
    evaluation_scope: str = setting(
        "output", "", "verdicts are taken over from runs with the same scope alone"
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: Any) -> Any:
        """Give the fields that are not there the values of the preset."""
        name = data.get("preset") if isinstance(data, Mapping) else None
        preset = PRESETS.get(name) if isinstance(name, str) else None
        return {**preset.values, **data} if preset else data

    @field_validator("budget")
    @classmethod
    def _check_budget(cls, text: str | None) -> str | None:
        if text is not None:
            parse_budget(text)
        return text

    @field_validator("policy")
    @classmethod
    def _check_policy(cls, text: str) -> str:
        parse_policy(text)
        return text

    def over(self, base: Config) -> Config:
        """Return `base` with every field that was given here."""
        return base.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})

    @property
    def limits(self) -> BudgetLimits:
        """The budget, parsed."""
        return parse_budget(self.budget) if self.budget else BudgetLimits()

    @property
    def calls_at_once(self) -> int:
        """The number of calls that may be in flight at one provider."""
        return self.concurrency or max(self.parallel, CONCURRENCY)

    @property
    def planned_steps(self) -> int:
        """The number of steps: the smaller of `steps` and the budget's, or `DEFAULT_STEPS`."""
        given = [number for number in (self.steps, self.limits.steps) if number is not None]
        return min(given, default=DEFAULT_STEPS)

    def with_steps(self, steps: int) -> Config:
        """Return a copy with another number of planned steps."""
        return self.model_copy(update={"steps": steps})

    @property
    def problem_seed(self) -> int:
        """The seed of weights and inputs."""
        return self.seed if self.inputs_seed is None else self.inputs_seed

    @property
    def checks(self) -> Checks:
        """The conditions on a candidate."""
        return Checks(
            precision=self.precision,
            require_custom=self.require_custom,
            allow_waiting=self.allow_waiting,
            backward=self.with_backward,
        )

    @property
    def chosen_policy(self) -> PolicyName:
        """The policy in force: the published reward uses the published search."""
        name, _ = parse_policy(self.policy)
        if name != AUTO:
            return cast(PolicyName, name)
        return "uct" if self.reward == "published" else "archive"

    @property
    def policy_text(self) -> str:
        """The policy in force with the parameters that it was given: `beam:width=3`."""
        _, pairs = split_policy(self.policy)
        return join_policy(self.chosen_policy, pairs)

    @property
    def policy_parameters(self) -> dict[str, float]:
        """The parameters that the policy was given; it has defaults for all others."""
        return parse_policy(self.policy)[1]

    @property
    def plan_items(self) -> int:
        """The most items of a plan; 0 where the policy makes no plans."""
        return int(self._of_stepwise("items"))

    @property
    def plan_tries(self) -> int:
        """The attempts at an item of a plan; 0 where the policy makes no plans."""
        return int(self._of_stepwise("tries"))

    def _of_stepwise(self, parameter: str) -> float:
        if self.chosen_policy != "stepwise":
            return 0
        return self.policy_parameters.get(parameter, PARAMETERS["stepwise"][parameter].default)

    @property
    def shows_tried(self) -> bool:
        """True where prompts list what else was tried."""
        if self.tried is not None:
            return self.tried
        return self.reward != "published" and self.chosen_policy not in _SHOWING_NOTHING_ELSE

    @property
    def names_outlines(self) -> bool:
        """True where a call names structures for large steps that are asked for at once."""
        if self.outlines is not None:
            return self.outlines
        return self.proposer != "manual" and self.contents == "full" and self.shows_tried

    @property
    def sums_up(self) -> bool:
        """True where a model sums up the search so far before each step."""
        return self.chosen_policy == "polca" if self.summary is None else self.summary

    def for_steps(self, steps: int) -> Config:
        """Return the configuration of a search of `steps` planned steps."""
        if self.founders:
            return self
        founders = max(math.ceil(_FOUNDERS_SHARE * steps), _FEWEST_FOUNDERS)
        return self.model_copy(update={"founders": min(founders, FOUNDERS)})

    @property
    def shrinks(self) -> bool:
        """True where the tree counts a noisy measurement for less."""
        return self.credit == "shrunk" and self.reward != "published"

    @property
    def counts_repeats(self) -> bool:
        """True where a step that repeats a kernel counts like any other."""
        return self.repeats == "step" or self.reward == "published"

    @property
    def rechecks(self) -> bool:
        """True where a new leader is measured once more."""
        return self.recheck and self.reward != "published"
