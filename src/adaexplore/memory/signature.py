"""Signatures: the common features of failures of one cause."""

from __future__ import annotations

import re

from adaexplore.core.rule import Signature
from adaexplore.core.verdict.evaluation import Failed, Fault, Mismatch

_QUOTED = re.compile(r"(['\"`])(?:(?!\1).){1,80}\1")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d_,.]*(?:e-?\d+)?\b|0x[0-9a-f]+", re.IGNORECASE)
_TENSOR_TYPE = re.compile(r"<[^<>]*>|\bpointer<[^>]*>|\b[bu]?(?:int|fp|f|bf|i)\d+\b")
_PLACE = re.compile(r"\bat \d+:\d+:?|\bline \d+\b|\S+\.(?:py|mlir|ttir|ttgir):\d+(?::\d+)?:?")
_SYMBOL = (
    re.compile(r"has no attribute '(\w+)'"),
    re.compile(r"name '(\w+)' is not defined|(\w+) is not defined"),
    re.compile(r"unexpected keyword argument '(\w+)'"),
    re.compile(r"unsupported AST node type: (\w+)"),
    re.compile(r"\btl\.(\w+)"),
    re.compile(r"^(\w+)\(\)"),
    re.compile(r"^(?:error: )?'?tt\.(\w+)'? op"),
)
_MESSAGE_CHARS = 120


def signature_of(failed: Failed) -> Signature:
    """The signature of a failed evaluation.

    Of a wrong output: the pattern that its wrong elements have in common, if any.
    """
    match failed.feedback:
        case Fault() as fault:
            message = fault.message
            return Signature(failed.status, fault.type, _symbol(message), normalised(message))
        case Mismatch() as mismatch:
            return Signature(failed.status, message=normalised(mismatch.pattern))
    return Signature(failed.status, message=normalised(failed.reason.partition(" while ")[0]))


def alike(a: Signature, b: Signature) -> bool:
    """Return True if two failures have one cause, as far as their signatures tell.

    The wording differs between versions of Triton: where a symbol is named, that and the kind of
    failure decide; otherwise the exception's type.
    """
    if a.status != b.status:
        return False
    if a.status == "wrong_output":
        return True
    if a.symbol or b.symbol:
        return a.symbol == b.symbol
    return a.type == b.type


def normalised(message: str) -> str:
    """A message without quoted names, numbers, types and places, in at most 120 characters."""
    text = message
    for pattern, stands_for in ((_PLACE, ""), (_QUOTED, "…"), (_TENSOR_TYPE, "…"), (_NUMBER, "…")):
        text = pattern.sub(stands_for, text)
    return " ".join(text.split())[:_MESSAGE_CHARS]


def _symbol(message: str) -> str:
    for pattern in _SYMBOL:
        found = pattern.search(message)
        if found:
            return next(group for group in found.groups() if group)
    return ""
