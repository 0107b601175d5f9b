"""Rules for failures: written by a model, kept only if a check confirms them."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from adaexplore.core.protocols.client import Message, Prompt, Reply
from adaexplore.core.rule import KINDS, CheckedKind, Matcher, Platform, Rule
from adaexplore.core.text.feedback import render
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.languages import DIALECTS
from adaexplore.llm.code import ReplyError, extract_code
from adaexplore.llm.templating import Templates
from adaexplore.memory.check import CheckedRule, Checker
from adaexplore.memory.extract import Case, counting, same_cause
from adaexplore.memory.lint import lint
from adaexplore.memory.patterns import alias_of
from adaexplore.memory.reduce import isolated
from adaexplore.memory.retrieve import relevant
from adaexplore.memory.signature import signature_of
from adaexplore.memory.unchecked.wording import MOST_CHARS, objection

LABEL, LABEL_AGAIN = "rule", "rule.again"
_FIELD = re.compile(
    r"^[\W_]*(NAME|KIND|STATEMENT|TOPICS|SAME)[\W_]*?:[*_ ]*(.+?)\s*$", re.MULTILINE
)
_MOST_NEAR, _NEAR_TOKENS = 5, 300
_MISSING = re.compile(r"module '(triton\.[\w.]+)' has no attribute '(\w+)'")
TEMPLATES: Mapping[str, Sequence[str]] = {
    "system.j2": ("where", "language"),
    "rule.j2": ("case", "failure", "most_chars", "near", "language", "is_run"),
    "again.j2": ("reason",),
}
"""Every template, with its variables."""


@dataclass(frozen=True, slots=True)
class Written:
    """Result of a case: a rule that is true here, or in one line why there is none.

    `known` if it is a rule that was there, which now counts this case too.
    """

    rule: Rule | None
    why: str = ""
    known: bool = False


Writing = Generator[Prompt, Reply, Written]
"""A talk about one case: yields what to ask, is sent the replies, returns what came of it.

The same case, replies and verdicts give the same prompts and the same rule.
"""


def written(case: Case, checker: Checker, known: Sequence[Rule] = ()) -> Writing:
    """Ask for a case's rule; ask once more with the reason if the reply holds none.

    Signatures and words do not tell every time that one of the `known` rules says it already: those
    that are near are shown, and the model may name one of them instead. Raises
    `InfrastructureError` where the checker's machinery is gone.
    """
    known = [rule for rule in known if rule.language == case.language]
    prompt = _asking(case, checker.where, _near(case, known, checker.where))
    why = ""
    for _ in range(2):
        reply = yield prompt
        if reply.finish != "complete" or not reply.text.strip():
            return Written(None, f"the model's reply is {reply.finish}")
        try:
            same = _same(case, reply.text, known)
            return Written(same or _rule(case, reply.text, checker), known=same is not None)
        except ReplyError as error:
            why = " ".join(str(error).split())
            again = _templates().render("again.j2", {"reason": str(error).strip()})
            prompt = prompt.after(reply.text, again, LABEL_AGAIN)
    return Written(None, f"asked twice: {why}")


def _asking(case: Case, where: Platform, near: Sequence[Rule]) -> Prompt:
    dialect = DIALECTS[case.language]
    system = _templates().render("system.j2", {"where": where, "language": dialect.title})
    told = {
        "case": case,
        "failure": render(case.failed),
        "most_chars": MOST_CHARS,
        "near": near,
        "language": dialect.title,
        "is_run": bool(where.gpu) or dialect.interpreted,
    }
    user = _templates().render("rule.j2", told)
    return Prompt((Message("system", system), Message("user", user)), LABEL)


@cache
def _templates() -> Templates:
    return Templates(files("adaexplore.memory") / "templates", {}, TEMPLATES)


def _near(case: Case, known: Sequence[Rule], where: Platform) -> Sequence[Rule]:
    """Return the known rules that may explain a case."""
    told = f"{case.witness}\n{render(case.failed)}"
    found = relevant(
        known,
        told,
        triton=where.triton,
        target=where.target,
        failure=case.signature,
        most_tokens=_NEAR_TOKENS,
    )
    return found[:_MOST_NEAR]


def _same(case: Case, text: str, known: Sequence[Rule]) -> Rule | None:
    """Return the known rule that a reply names, with the case counted; None if it names none."""
    named = [value.strip("`*. ") for name, value in _FIELD.findall(text) if name == "SAME"]
    if not named:
        return None
    for rule in known:
        if rule.name == named[0]:
            return counting(rule, case.tasks, case.support)
    raise ReplyError(f"there is no known rule {named[0]!r}.")


def _rule(case: Case, text: str, checker: Checker) -> Rule:
    """Return the rule in a reply; raise `ReplyError` with the reason for the model."""
    draft = _draft(case, text)
    why = objection(draft.statement, draft.reference, draft.witness, draft.remedy)
    if why:
        raise ReplyError(f"{why}.")
    _believe(case, checker.observe(draft))
    rule = _nearer(case, draft, checker)
    return replace(rule, matcher=_matcher(rule, case))


def _draft(case: Case, text: str) -> Rule:
    fields = {name.lower(): value for name, value in _FIELD.findall(text)}
    missing = [name for name in ("name", "kind", "statement") if name not in fields]
    if missing:
        raise ReplyError(f"there is no line that begins with {missing[0].upper()}:")
    kinds = {kind: kind for kind in KINDS if kind != "speed"}  # its witness fails
    kind: CheckedKind | None = kinds.get(fields["kind"].strip("`*. ").split(" ")[0].lower())
    if kind is None:
        raise ReplyError(f"KIND is to be one of {', '.join(kinds)}.")
    topics = (topic.strip(" `") for topic in fields.get("topics", "").split(","))
    return Rule(
        name=f"{_slug(fields['name'])}-{case.id[:4]}",
        kind=kind,
        statement=" ".join(fields["statement"].split()),
        reference=_problem(text) or case.reference,
        witness=case.witness,
        remedy=extract_code(text, "ModelNew"),
        signature=case.signature,
        support=case.support,
        tasks=case.tasks,
        source="failure",
        topics=tuple(dict.fromkeys(topic for topic in topics if topic)),
        language=case.language,
    )


def _problem(text: str) -> str:
    """Return the smaller problem in a reply, "" if there is none."""
    try:
        return extract_code(text, "Model")
    except ReplyError:
        return ""


def _believe(case: Case, checked: CheckedRule) -> None:
    """Raise `ReplyError` unless the remedy passes and the witness fails as the case does."""
    witness = checked.witness
    if not isinstance(witness, Failed) or not _fails_so(case, witness):
        raise ReplyError(
            "for your problem the candidate does not fail as it did: " + render(witness)
        )
    if not checked.true:
        raise ReplyError(f"{checked.why.partition(':')[0]}:\n{render(checked.remedy)}")


def _fails_so(case: Case, failed: Failed) -> bool:
    signature = signature_of(failed)
    if "wrong_output" in (signature.status, case.signature.status):
        return signature.status == case.signature.status
    return same_cause(signature, case.signature)


def _nearer(case: Case, rule: Rule, checker: Checker) -> Rule:
    """Return the rule with a witness that differs from the remedy in the fault alone."""

    def fails(source: str) -> bool:
        verdict = checker.verdict(rule, source)
        return isinstance(verdict, Failed) and _fails_so(case, verdict)

    near = replace(rule, witness=isolated(rule.witness, rule.remedy, fails))
    return checker.observe(near).rule


def _matcher(rule: Rule, case: Case) -> Matcher | None:
    """Return the matcher of a rule about a missing name of `tl`, `gl` or the like; or None."""
    told = getattr(case.failed.feedback, "message", "")
    missing = _MISSING.search(told.replace("\\'", "'"))
    alias = alias_of(missing[1]) if missing else None
    if not missing or not alias:
        return None
    matcher = Matcher((f"{alias}.{missing[2]}",))
    tried = replace(rule, matcher=matcher)
    where = rule.holds[-1]
    found = [bool(lint(s, [tried], where.triton)) for s in (rule.witness, rule.remedy)]
    return matcher if found == [True, False] else None


def _slug(text: str) -> str:
    """Return a rule's name made of a reply's name, at most 60 characters."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return "-".join(words)[:60].strip("-") or "rule"
