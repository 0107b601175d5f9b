"""The prompts of training: one task, and feedback on a kernel. They depend on nothing else.

Prompts of a search quote its memory, its machine and other kernels. What a policy is trained on
must be the same wherever it is asked.
"""

from __future__ import annotations

from adaexplore.core.problem import Language, Precision
from adaexplore.core.text.feedback import render
from adaexplore.core.verdict.evaluation import Evaluation, Failed
from adaexplore.languages import DIALECTS


def task_prompt(
    source: str, language: Language, precision: Precision, *, backward: bool = False
) -> str:
    """Return the task: the reference `source`, and what the module `ModelNew` must do."""
    dialect = DIALECTS[language]
    imports = ", ".join(("torch", *dialect.imports, "the standard library"))
    step = " A call is a training step: forward, then all gradients." * backward
    return (
        "Make this PyTorch module faster.\n\n"
        f"{fenced(source)}\n\n"
        "Write `ModelNew`: it computes the same function as `Model` in less time, with "
        f"{dialect.kernels}. Its constructor and its `forward` take the same arguments, and its "
        "constructor creates the same layers in the same order. Results are compared with the "
        f"reference in float64, in precision class {precision}, also on other inputs of "
        f"the same shapes and with other weights.{step} It imports only {imports}.\n\n"
        "Answer with one line that names the idea, then the complete module in one ```python block."
    )


def feedback_prompt(evaluation: Evaluation) -> str:
    """Return the verdict on a kernel, and what to do next."""
    wanted = "right" if isinstance(evaluation, Failed) else "faster, and still right"
    return (
        f"{render(evaluation)}\n\n"
        f"Make it {wanted}. Answer with one line that names the change, then the complete module "
        "in one ```python block."
    )


def answer(note: str, source: str) -> str:
    """Return a kernel as a reply to these prompts."""
    line = " ".join(note.split())
    return f"{line}\n\n{fenced(source)}" if line else fenced(source)


def fenced(source: str) -> str:
    """Return a source in a block whose fence is longer than any in it."""
    fence = "```"
    while fence in source:
        fence += "`"
    return f"{fence}python\n{source.strip()}\n{fence}"
