"""The templates of prompts, and the variables that each may use."""

from __future__ import annotations

from collections.abc import Mapping

from adaexplore.core.problem import LANGUAGES
from adaexplore.languages import examples_of


def notes_name(language: str) -> str:
    """Return the name of the template with the notes on a language."""
    return f"{language}.j2"


def example_name(language: str, kind: str = "") -> str:
    """Return the name of the template with the example of a language for a kind of problem."""
    return f"{language}_{kind}_example.j2" if kind else f"{language}_example.j2"


EXAMPLES = {
    example_name(language, kind): file
    for language in LANGUAGES
    for kind, file in examples_of(language).items()
}
"""The examples of all languages, by the name of the template."""


SHARED: Mapping[str, str] = {
    "problem": "the problem: `source`, `language`, `device`, `precision`, `mode`, `target`, ...",
    "language": f"the language of the kernels: one of {', '.join(LANGUAGES)}",
    "dialect": "the language: `title`, `kernels`, `imports`, `on_gpu`, `strategies` by name, ...",
    "hardware": "the device: `name`, `capability`, `multiprocessors`, `sheet`, `limits`, ...",
    "environment": "the run's record of the machine: versions, drivers, processors",
    "versions": "versions of torch and Triton as pairs of numbers, such as (3, 6); () if unknown",
    "roofline": "measured rates of the device and the problem's roofline; None if not measured",
    "products": "on a GPU: `library_us`, `timed`, `depth`, `chain_us`, ...; None if not measured",
    "baselines_us": "times of the baselines (`eager` and others) in microseconds; or empty",
    "estimate": "estimate of the reference without a device: `time_us`, `bound_by`; else None",
    "errors": "PyTorch's own relative error by precision class",
    "wider_bounds": "bounds beyond ten times that on own inputs, with their input sets",
    "outputs": "the reference's outputs, each with `path`, `shape` and `dtype`",
    "inputs": "captured arguments: `path`, `shape`, `dtype`, `strides`, `values`; empty if drawn",
    "workloads": "if there are several: `name`, `outputs`, `baselines_us` of each; else empty",
    "labels": "labels of the problem, each with its reason",
    "notes": "warnings about the reference, such as a wrong baseline",
    "rules": "rules from memory, most useful first",
    "demand": "a further demand of the user on every kernel; empty for none",
    "tried": "steps like this one and their results, best first",
    "contrast": "correct kernels to compare, fastest first; empty where no comparison is asked for",
    "summary": "a model's summary of the search so far; empty if it was not asked",
    "others": "what other large steps in flight write, a line each, as far as it is known",
    "outline": "the structure to write: `name`, `text`; None where the step is given none",
    "in_flight": "number of other steps in flight",
    "patch_format": "the form of a patch that replies must use",
}
"""Variables that every template may use, with their meaning."""

_VERSIONS = {"versions": SHARED["versions"]}
_POOL = {"pool": "kernels to beat; with some policies also failed ones"}
_LEFT_OUT = {"left_out": "number of older kernels omitted to fit the model's context"}
_WINDOW = {"window": "kernels, each made from the one before, oldest first; the last is to change"}
_SLOWEST = {"slowest": "two lines on the kernel that takes most time and its limit; or empty"}
_GUIDANCE = {"guidance": "the reviser's changes; empty if it was not asked"}
_ITEMS = {"items": "items of a plan: `number`, `text`, `state`, `attempts`, oldest first"}
_KERNELS = {"kernels": "kernels with their measurements; the last of a path is to change"}
_FAILED = {"kernel": "the failed kernel", "log": "the end of its log; empty if it adds nothing"}

TEMPLATES: Mapping[str, Mapping[str, str]] = {
    "system.j2": {},
    "problem.j2": {},
    "hardware.j2": {},
    "rules.j2": {},
    **{notes_name(language): {} for language in LANGUAGES},
    **dict.fromkeys(EXAMPLES, _VERSIONS),
    "kernel.j2": {},
    "example.j2": {"example": "a complete module in the language"},
    "pool.j2": {**_POOL, **_LEFT_OUT},
    "verdicts.j2": _POOL,
    "strategies.j2": {"strategies": "the strategies of the catalogue for this language"},
    "items.j2": _ITEMS,
    "attempt.j2": {"attempt": "the last failed attempt at the item, or None"},
    "contrast.j2": {},
    "compare.j2": {},
    "tried.j2": {},
    "history.j2": {"history": "steps so far with their results, oldest first", **_LEFT_OUT},
    "summary.j2": {},
    "earlier.j2": _WINDOW,
    "current.j2": _WINDOW,
    "window.j2": {**_WINDOW, **_LEFT_OUT},
    "guidance.j2": _GUIDANCE,
    "failed.j2": _FAILED,
    "task_summary.j2": {},
    "others.j2": {},
    "outline.j2": {},
    "task_outlines.j2": {**_POOL, "number": "the number of structures to name"},
    "task_outline.j2": {},
    "task_large.j2": _POOL,
    "task_plan.j2": _POOL,
    "task_strategy.j2": _POOL,
    "task_items.j2": {**_POOL, "most": "the most items that a plan may have"},
    "task_first.j2": _POOL,
    "task_item.j2": {"item": "the item to carry out", **_SLOWEST},
    "task_contrast.j2": {},
    "task_reviser.j2": {**_WINDOW, **_SLOWEST},
    "task_tuner.j2": {**_WINDOW, **_GUIDANCE, **_SLOWEST},
    "task_repair.j2": {},
    "patches.j2": {},
    "module.j2": {},
    "published_system.j2": {},
    "published_problem.j2": {},
    "published_rules.j2": {},
    "published_kernels.j2": {"title": "the heading", **_KERNELS, **_LEFT_OUT},
    "published_task_large.j2": _KERNELS,
    "published_task_reviser.j2": _KERNELS,
    "published_task_tuner.j2": {**_KERNELS, **_GUIDANCE},
    "again.j2": {"reason": "the reason why the reply cannot be used"},
    "cut_off.j2": {},
    "lint.j2": {"faults": "the rules that the module breaks"},
}
"""Every template, with the variables that it may use beside the shared ones."""

FOLLOW_UPS = ("again.j2", "cut_off.j2", "lint.j2")
"""Messages of a conversation that has the rest already."""

ALONE = (*FOLLOW_UPS, *EXAMPLES)
"""Templates that may not use the shared variables."""
