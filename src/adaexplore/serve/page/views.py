"""The pages as HTML, from the templates of reports and a few of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from adaexplore.core.errors import AdaExploreError
from adaexplore.report import Summary, text
from adaexplore.report.calls import CallTotals, summed
from adaexplore.report.campaign.html import page_variables as campaign_variables
from adaexplore.report.campaign.summary import CampaignSummary, Result
from adaexplore.report.compare.html import page_variables as comparison_variables
from adaexplore.report.page import asset, page_from
from adaexplore.report.run.embed import pair_json
from adaexplore.report.run.html import SCRIPTS
from adaexplore.report.run.summary import Row
from adaexplore.report.study.html import page_variables as study_variables
from adaexplore.run.outcome.comparison import compare_runs
from adaexplore.serve.page.library import Figures, Library, pulse
from adaexplore.serve.page.shelf import Entry, Shelf

_TEMPLATES = files("adaexplore.serve.page") / "templates"
_BUNDLES = {
    "page.css": ("report.css", "live.css"),
    "run.js": (*SCRIPTS, "live.js", "run.js"),
    "live.js": ("live.js", "cards.js"),
    "kernels.js": ("source.js", "detail.js", "kernels.js"),
}
_KINDS = {"css": "text/css", "js": "text/javascript"}
_STATES = {"running": "good", "starting": "good", "waiting": "warn", "queued": "", "failed": "bad"}


@dataclass(frozen=True, slots=True)
class Reader:
    """Who looks at the pages: the `csrf` field of the forms, and the user, empty on loopback."""

    shelf: Shelf
    csrf: str
    user: str = ""


@dataclass(frozen=True, slots=True)
class Meter:
    """One figure of a meter: its name, its text, and its share of a limit, if there is one."""

    name: str
    text: str
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """An entry in the overview, with the word for its state and that word's CSS class."""

    entry: Entry
    figures: Figures
    state: str
    css: str
    meters: tuple[Meter, ...]
    trouble: str


def load(name: str) -> str:
    """Return the text of a template, style sheet or script, of the pages or of reports."""
    own = _TEMPLATES / name
    return own.read_text(encoding="utf-8") if own.is_file() else asset(name)


@cache
def bundle(name: str) -> tuple[str, str] | None:
    """Return the text and the media type of a file that pages load; None for an unknown name."""
    if name not in _BUNDLES:
        return None
    return "\n".join(map(load, _BUNDLES[name])), _KINDS[name.rpartition(".")[2]]


def _address(name: str) -> str:
    """Return the address of a file that pages load; it changes with the file."""
    found = bundle(name)
    assert found
    return f"/assets/{name}?{hashlib.sha256(found[0].encode()).hexdigest()[:12]}"


class Views:
    """The pages for a reader; every method raises `BadInputError` for records that are damaged."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def overview(self, reader: Reader) -> str:
        """Return the page of all campaigns and searches."""
        entries = reader.shelf.entries()
        cards = [self._card(e, entries, reader) for e in entries if not e.campaign]
        cards.sort(key=lambda card: (card.state != "running", -card.figures.created_at))
        figures = [card.figures for card in cards]
        spent = summed(CallTotals, [each.spent for each in figures])
        return self._page(
            "overview.html.j2",
            reader,
            campaigns=[card for card in cards if card.entry.kind == "campaign"],
            searches=[card for card in cards if card.entry.kind == "run"],
            running=sum(card.state == "running" for card in cards),
            totals=(
                Meter("Device", text.duration_s(sum(each.device_s for each in figures))),
                Meter("At work", text.duration_s(sum(each.busy_s for each in figures))),
                Meter("Models", text.spent(spent) if spent.calls else "not asked"),
            ),
            at=self.version(reader.shelf),
        )

    def entry(self, reader: Reader, entry: Entry) -> str:
        """Return the page of a run, a campaign or a study."""
        entries = reader.shelf.entries()
        card = self._card(entry, entries, reader)
        shown = {"card": card, "at": self.version(reader.shelf, entry)}
        if card.figures.error or not card.figures.made + card.figures.planned:
            return self._page("unread.html.j2", reader, **shown)
        if entry.kind == "run":
            reading = self._library.run(entry)
            above = next((each for each in entries if each.key == entry.campaign), None)
            prompts = reader.shelf.prompts(entry)
            variables = reading.variables | shown | {"prompts": prompts, "above": above}
            return self._page("live_run.html.j2", reader, **variables)
        runs = _runs_of(entry, entries)
        summary = self._library.campaign(entry, runs)
        keys = {run.path.relative_to(entry.path).as_posix(): run.key for run in runs}

        def link(result: Result) -> str:
            return f"/runs/{keys.get(result.folder, '')}"

        if isinstance(summary, CampaignSummary):
            variables = campaign_variables(summary) | shown | {"link": link}
            return self._page("live_campaign.html.j2", reader, **variables)
        variables = study_variables(summary) | shown | {"link": link}
        return self._page("live_study.html.j2", reader, **variables)

    def kernels(self, reader: Reader, given: dict[str, str]) -> str:
        """Return the page that compares two kernels; `given` has `a`, `a_step`, `b`, `b_step`."""
        entries = [entry for entry in reader.shelf.entries() if entry.kind == "run"]
        by_key = {entry.key: entry for entry in entries}
        chosen, rows = [], []
        for side in ("a", "b"):
            entry = by_key.get(given.get(side, ""))
            row = self._row(entry, given.get(f"{side}_step", "")) if entry else None
            chosen.append((side, entry, row))
            rows.append(row)
        first, second = rows
        data = pair_json(first, second) if first and second else ""
        return self._page(
            "kernels.html.j2", reader, entries=entries, chosen=chosen, data=data, given=given
        )

    def _row(self, entry: Entry, step: str) -> Row | None:
        """Return the step of a run with a number; without one, the best, or else the last."""
        summary: Summary = self._library.summary(entry)
        if not step:
            return summary.best or (summary.rows[-1] if summary.rows else None)
        return next((row for row in summary.rows if str(row.node.id) == step), None)

    def searches(self, reader: Reader, keys: Sequence[str]) -> str:
        """Return the comparison of runs and campaigns."""
        chosen = [entry for entry in reader.shelf.entries() if entry.key in keys]
        found = compare_runs([entry.path for entry in chosen])
        return self._page("live_comparison.html.j2", reader, **comparison_variables(found))

    def notice(self, reader: Reader | None, title: str, detail: str) -> str:
        """Return a page that says one thing."""
        return self._page("notice.html.j2", reader, title=title, detail=detail)

    def login(self, csrf: str, wrong: str) -> str:
        """Return the page that asks for a token."""
        return self._page("login.html.j2", None, csrf=csrf, wrong=wrong)

    def version(self, shelf: Shelf, entry: Entry | None = None) -> str:
        """Return a text that changes whenever a page has something new to show."""
        entries = shelf.entries()
        if entry is not None:
            entries = [each for each in entries if entry.key in (each.key, each.campaign)]
        found = "".join(
            f"{e.key}{pulse(e.path)}{shelf.state(e)}{shelf.trouble(e)}" for e in entries
        )
        return hashlib.sha256(found.encode()).hexdigest()[:16]

    def _card(self, entry: Entry, entries: Sequence[Entry], reader: Reader) -> Card:
        try:
            figures = self._library.figures(entry, _runs_of(entry, entries))
        except AdaExploreError as error:
            figures = Figures(error=str(error))
        state = reader.shelf.state(entry) or _at_rest(figures)
        return Card(
            entry=entry,
            figures=figures,
            state=state,
            css=_STATES.get(state, ""),
            meters=_meters(figures),
            trouble=reader.shelf.trouble(entry),
        )

    def _page(self, template: str, reader: Reader | None, **variables: object) -> str:
        common = {"reader": reader, "address": _address}
        html = page_from(load, template, common | variables)
        private = reader.shelf.private if reader else ""
        return html.replace(f"{private}/", "") if private else html


def _runs_of(campaign: Entry, entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.campaign == campaign.key]


def _at_rest(figures: Figures) -> str:
    if figures.error:
        return "unreadable"
    if figures.waiting or figures.queued:
        return "waiting"
    return "done" if figures.ended else "stopped"


def _held(figures: Figures) -> float | None:
    """Return the share of the search's time in which the device was held."""
    return min(figures.device_s / figures.busy_s, 1.0) if figures.busy_s else None


def _meters(figures: Figures) -> tuple[Meter, ...]:
    """Return the meters of steps, device, time and cost, with a share where a limit is known."""
    limits, spent = figures.limits, figures.spent
    found = [
        Meter(
            "Steps",
            f"{figures.made} of {figures.planned}",
            figures.made / figures.planned if figures.planned else None,
        ),
        Meter("Device", text.duration_s(figures.device_s), _held(figures)),
    ]
    if limits.seconds:
        share = min(figures.busy_s / limits.seconds, 1.0)
        of = f"{text.duration_s(figures.busy_s)} of {text.duration_s(limits.seconds)}"
        found.append(Meter("Time", of, share))
    if limits.tokens:
        of = f"{text.tokens(spent.tokens)} of {text.tokens(limits.tokens)}"
        found.append(Meter("Tokens", of, min(spent.tokens / limits.tokens, 1.0)))
    if limits.usd:
        of = f"{text.usd(spent.cost_usd)} of {text.usd(limits.usd)}"
        found.append(Meter("Cost", of, min(spent.cost_usd / limits.usd, 1.0)))
    elif spent.calls:
        found.append(Meter("Models", text.spent(spent)))
    return tuple(found)
