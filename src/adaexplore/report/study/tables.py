"""A study as Rich renderables, and the cells that the page shares with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from adaexplore.core.text.units import plural
from adaexplore.report import text
from adaexplore.report.campaign.tables import spending, unjudged_lines
from adaexplore.report.compare.comparison import Pair
from adaexplore.report.compare.tables import p_value
from adaexplore.report.study.kinds import KindRow, MemoryRow
from adaexplore.report.study.scores import FAST, ArmScore, Scope, ScopeTests
from adaexplore.report.study.summary import StudySummary

SCORE_HEADS = (
    *("arm", "correct"),
    *(f"fast_{p:g}" for p in FAST),
    *("mean, capped", "geometric mean"),
)
SCORE_NOTE = (
    "A row is over all runs of an arm, one for each problem and seed; a run without a correct "
    "kernel counts as 0 in the capped mean (at 10×), as 0.1 in the geometric mean, and is in no "
    "fast_p, the share of runs with a correct kernel more than p times as fast."
)
TEST_HEADS = ("arm", "over", "ratio", "95 %", "p", "won, tied, lost", "decision")
TEST_NOTE = (
    "Ratios are geometric means over problems of the claimed speedups, like for like, paired by "
    "problem and seed. Intervals are a bootstrap over problems and seeds; p is that of a sign-flip "
    "permutation test over problems, not corrected for the number of pairs."
)
KIND_HEADS = (
    *("arm", "kind", "steps", "correct", "faster than base", "new best"),
    *("speedup over base", "code similarity"),
)
KIND_NOTE = (
    "The base of a step is its parent, or for a step from nothing the best kernel so far. Speedups "
    "over it are geometric means over the steps with both measured. Code similarity is the cosine "
    "between the token counts of both sources."
)
MEMORY_HEADS = (
    *("arm", "memory", "rules", "steps with prompts", "rules a step", "tokens a step"),
    *("different rules told", "steps breaking a rule", "… one that they were told"),
    *("correct of these", "correct of the others"),
)


def study_tables(summary: StudySummary) -> RenderableType:
    """Return the main table, the tests, the kinds of steps, the memory and the costs."""
    parts: list[RenderableType] = []
    for rows in score_tables(summary):
        table = _table(SCORE_HEADS, map(score_cells, rows))
        parts += [Text(score_title(rows[0]), style="bold"), table, Text()]
    for tests in test_tables(summary):
        table = _table(TEST_HEADS, map(pair_cells, tests.pairs), left=2)
        parts += [Text(test_title(tests), style="bold"), table, Text()]
    parts += [Text("by kind of step", style="bold")]
    parts += [_table(KIND_HEADS, map(kind_cells, summary.kinds), left=2), Text()]
    if any(row.rules for row in summary.memory):
        parts += [Text("memory", style="bold")]
        parts += [_table(MEMORY_HEADS, map(memory_cells, summary.memory), left=2), Text()]
    parts += [Text(line) for line in unjudged_lines(summary.campaign)]
    parts += [Text(note, style="yellow") for note in summary.notes]
    parts.append(Text(f"spent: {spending(summary.campaign)}", style="dim"))
    return Parts(*parts)


def score_tables(summary: StudySummary) -> list[list[ArmScore]]:
    """Return the rows of the main table by scope and baseline.

    Where no problem is set apart, both scopes are the same, and all problems stand alone.
    """
    found: dict[tuple[str, str], list[ArmScore]] = {}
    for score in summary.scores:
        if score.scope == "all" or score.problems < len(summary.problems):
            found.setdefault((score.scope, score.baseline), []).append(score)
    return list(found.values())


def test_tables(summary: StudySummary) -> list[ScopeTests]:
    """Return the tests by scope; none with one arm, and one where both scopes are the same."""
    return [
        tests
        for tests in summary.tests
        if tests.pairs and (tests.scope == "all" or tests.problems < len(summary.problems))
    ]


def score_title(score: ArmScore) -> str:
    """Return the title of a table of scores."""
    over = "like for like" if score.baseline == "strongest" else "over eager"
    return f"{over}, {_scope(score.scope, score.problems)}, {score.runs} runs an arm"


def test_title(tests: ScopeTests) -> str:
    """Return the title of the tests of a scope."""
    return f"arm over arm, {_scope(tests.scope, tests.problems)}"


def score_cells(score: ArmScore) -> tuple[str, ...]:
    """Return the cells of a score under `SCORE_HEADS`."""
    return (
        score.arm,
        f"{score.correct} of {score.runs}",
        *(text.share(share) for share in score.averages.fast_p.values()),
        text.speedup(score.averages.published_mean),
        text.speedup(score.averages.published_geometric_mean),
    )


def pair_cells(pair: Pair) -> tuple[str, ...]:
    """Return the cells of a pair under `TEST_HEADS`."""
    return (
        pair.arm,
        pair.over,
        text.speedup(pair.ratio),
        text.interval(pair.interval) if pair.interval else "-",
        p_value(pair).removeprefix("p = ").removeprefix("p "),
        f"{pair.wins}, {pair.ties}, {pair.losses}",
        pair.decision,
    )


def kind_cells(row: KindRow) -> tuple[str, ...]:
    """Return the cells of a kind of step under `KIND_HEADS`."""
    return (
        row.arm,
        row.kind,
        str(row.steps),
        *(text.share(share) for share in (row.correct, row.faster, row.improved)),
        f"{text.speedup(row.gain)} ({row.compared})" if row.gain is not None else "-",
        f"{row.similarity:.2f}" if row.similarity is not None else "-",
    )


def memory_cells(row: MemoryRow) -> tuple[str, ...]:
    """Return the cells of an arm's memory under `MEMORY_HEADS`."""
    shares = (row.correct_breaking, row.correct_keeping)
    return (
        row.arm,
        row.memory,
        *map(str, (row.rules, row.prompted)),
        *(f"{mean:.1f}" for mean in (row.per_step, row.tokens)),
        str(row.distinct),
        *(text.share(share) for share in (row.breaking, row.breaking_shown)),
        *("-" if share is None else text.share(share) for share in shares),
    )


def byline(summary: StudySummary) -> str:
    """Return the size of the study and its costs in one line."""
    problems, seeds = len(summary.problems), len({seed for _, seed in summary.cells})
    sizes = {"arm": len(summary.arms), "problem": problems, "seed": seeds}
    parts = [plural(count, noun) for noun, count in sizes.items()]
    budget = summary.campaign.budget
    parts += [f"budget {budget}"] if budget else []
    return " · ".join([*parts, spending(summary.campaign)])


def settings_line(settings: Iterable[tuple[str, object]]) -> str:
    """Return an arm's settings in one line."""
    return ", ".join(f"{key}={value}" for key, value in settings) or "-"


def _scope(scope: Scope, problems: int) -> str:
    many = plural(problems, "problem")
    if scope == "all":
        return f"all {many}"
    return f"{many} without a label and without winners by algebra"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for i, head in enumerate(heads):
        table.add_column(head, justify="left" if i < left else "right")
    for row in rows:
        table.add_row(*row)
    return table
