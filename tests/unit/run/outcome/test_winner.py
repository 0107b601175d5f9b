"""The starred step, the claimed step and best.py are one step, whatever the verdicts and kills."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.listener import Confirming, Recorded, Waiting
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.core.verdict.uses import Use
from adaexplore.run.outcome import winner
from adaexplore.run.outcome.results import summary_of
from adaexplore.run.outcome.winner import confirmed_of, to_confirm
from adaexplore.run.search import Search
from adaexplore.store import Confirmation, RunRecord, create_run, open_run

STEPS = 6


def passed(speedup, spread=1.0):
    interval = (speedup / spread, speedup * spread)
    timing = Timing(10.0, (9.0, 11.0), {"eager": 20.0}, speedup, interval, speedup, 7)
    return Passed("fp32", 1e-7, timing)


VERDICTS = [
    *(passed(speedup) for speedup in (0.9, 1.2, 1.2, 1.5, 2.0)),
    passed(1.8, 1.6),
    Failed("wrong_output", "off by one"),
    Failed("infra_error", "the machine is gone"),
]


class Numbered:
    """A proposer of a new candidate for every step, and of a repeated one for some."""

    def begin(self, context):
        yield from ()
        number = len(context.history) % 4
        return Proposal(Candidate(f"class ModelNew: number = {number}", "cpp"), "fake", "new")

    def close(self):
        pass


class Scripted:
    """An evaluator that gives the verdicts of a list, one after another."""

    def __init__(self, verdicts):
        self._verdicts = iter(verdicts)
        self.measured_again = []

    def prepare(self):
        return ReferenceFacts(baselines_us={"eager": 20.0})

    def evaluate(self, candidate, parent=None, *, again=False):
        self.measured_again.append(again)
        return next(self._verdicts)

    def close(self):
        pass


class KilledPath(type(Path())):
    """A path of best.py; the session is killed where the file would be written the n-th time."""

    left = 0

    def with_suffix(self, suffix):
        KilledPath.left -= 1
        if KilledPath.left == 0:
            raise KeyboardInterrupt
        return Path(self).with_suffix(suffix)


def record():
    return RunRecord(
        problem=Problem("example", "class Model: ...", "cpp", "cpu"),
        config=Config(policy="irl", recheck=False, confirm_top=3, steps=STEPS, seed=3),
        proposers=("fake",),
        environment=Environment(),
        command="",
        created_at=0.0,
    )


def assert_one_step(directory):
    summary = summary_of(directory.store, directory.path)
    starred = [row.node for row in summary.rows if row.best]
    written = directory.best_path.read_text() if directory.best_path.exists() else None
    assert written == (starred[0].candidate.source if starred else None)
    if starred:
        assert summary.headline.node_id == starred[0].id


@settings(max_examples=15)
@given(
    st.lists(st.sampled_from(VERDICTS), min_size=60, max_size=60),
    st.lists(st.tuples(st.booleans(), st.integers(1, 6)), max_size=3),
)
def test_the_star_the_claim_and_best_py_are_one_step(verdicts, kills):
    folder = Path(tempfile.mkdtemp())
    try:
        create_run(folder / "run", record()).close()
        evaluator = Scripted(verdicts)
        for in_writing, moment in [*kills, (False, 0)]:
            session(folder / "run", evaluator, in_writing, moment)
        with open_run(folder / "run") as directory:
            assert len(directory.store.nodes()) == STEPS
            assert_one_step(directory)
    finally:
        shutil.rmtree(folder)


def test_a_contradicting_noisy_confirmation_is_measured_again_once_the_machine_is_quiet(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(winner, "_PAUSES_S", (2.0, 10.0))
    run = record()
    create_run(
        tmp_path / "run", replace(run, config=run.config.model_copy(update={"steps": 1}))
    ).close()
    evaluator = Scripted([passed(1.32), passed(0.094, 8.0), passed(1.31)])
    waits = []
    with open_run(tmp_path / "run") as directory:
        search = Search(
            directory.store,
            {"fake": Numbered()},
            evaluator,
            directory.best_path,
            sleep=waits.append,
        )
        events = list(search.run())
        headline = summary_of(directory.store, directory.path).headline
    assert [event.wait_s for event in events if isinstance(event, Waiting)] == waits == [2.0]
    assert evaluator.measured_again == [False, True, True]  # a confirmation takes no known time
    assert (headline.verdict, headline.confirmed) == ("faster", True)
    assert headline.sentence.startswith("1.31×")


class Kept:
    """A store that holds confirmations of step 1."""

    def __init__(self, *evaluations):
        self._evaluations = evaluations

    def confirmations(self):
        return [Confirmation(1, evaluation, 0.0) for evaluation in self._evaluations]


def test_the_uses_complete_a_confirmation_and_are_none_of_their_own():
    proposal = Proposal(Candidate("class ModelNew: ...", "cpp"), "fake", "")
    nodes = [Node(1, 0, "large", proposal, passed(1.5))]
    noisy = passed(1.4, 2.0)
    tried = replace(noisy, uses=(Use("copy.deepcopy", "holds"),))
    # Of at most three confirmations, two are made: noisy ones, so a third may settle the result.
    assert to_confirm(nodes, Kept(noisy, passed(1.6, 2.0), tried), 1) == nodes[0]
    assert to_confirm(nodes, Kept(noisy, noisy, passed(1.6, 2.0)), 1) is None
    assert confirmed_of(nodes, Kept(noisy, tried)) == {1: tried}
    assert confirmed_of(nodes, Kept(tried)) == {1: tried}


def session(path, evaluator, in_writing, moment):
    """Search until the end or a kill, which comes at an event or where best.py is written."""
    KilledPath.left = moment if in_writing else 0
    with open_run(path) as directory:
        best = KilledPath(directory.best_path)
        search = Search(
            directory.store, {"fake": Numbered()}, evaluator, best, sleep=lambda _: None
        )
        try:
            for count, event in enumerate(search.run(), start=1):
                if isinstance(event, Recorded | Confirming):
                    assert_one_step(directory)
                if count == moment and not in_writing:
                    return
        except KeyboardInterrupt:
            return
