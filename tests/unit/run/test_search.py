"""The loop over a real store, with a proposer and an evaluator whose answers are computed."""

import hashlib
from dataclasses import replace

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadProblemError, InfrastructureError
from adaexplore.core.node import ROOT_ID
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols import listener as listener_module
from adaexplore.core.protocols.client import Message, Prompt, Reply
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Cost, Failed, Passed, Timing, rank
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.core.verdict.uses import Use
from adaexplore.run.asks.ledger import Ledger
from adaexplore.run.search import Search
from adaexplore.store import RunRecord, create_run, open_run

STEPS = 30
FACTS = ReferenceFacts(baselines_us={"eager": 10.0})


def number_from(*parts) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4], "big")


class FakeProposer:
    """A proposer whose proposal depends on the context alone: one of 20 candidates, or none."""

    def __init__(self, variety: int = 20) -> None:
        self.variety = variety
        self.contexts = []

    def begin(self, context):
        yield from ()
        self.contexts.append(context)
        seen = {
            "seed": context.seed,
            "window": [node.id for node in context.window],
            "pool": [node.id for node in context.pool],
            "history": len(context.history),
        }
        number = number_from(context.step_kind, seen)
        if number % 11 == 0:
            return Proposal(Candidate("", "cpp"), "fake", "nothing", seen, failure="no idea")
        source = f"class ModelNew: number = {number % self.variety}"
        return Proposal(Candidate(source, "cpp"), "fake", f"number {number % self.variety}", seen)

    def close(self):
        pass


class FakeEvaluator:
    """An evaluator by the candidate's hash: three in four pass, with different speedups."""

    def __init__(self) -> None:
        self.evaluated = []
        self.parents = []

    def prepare(self):
        return FACTS

    def evaluate(self, candidate, parent=None, *, again=False):
        self.evaluated.append(candidate.source)
        self.parents.append(parent and parent.source)
        number = number_from(candidate.digest)
        if number % 4 == 0:
            return Failed("wrong_output" if number % 8 else "compile_error", "as computed")
        return passed(0.5 + number % 1000 / 500)

    def close(self):
        pass


def passed(speedup: float) -> Passed:
    timing = Timing(10.0, (9.0, 11.0), {"eager": 20.0}, speedup, (speedup, speedup), speedup, 7)
    return Passed("fp32", 1e-7, timing)


class Listener(listener_module.Listener):
    """A listener that records events and can raise at a given moment."""

    def __init__(self, raise_at=None, error=KeyboardInterrupt) -> None:
        self._raise_at = raise_at
        self._error = error
        self.told = []
        self.nodes = []
        self.bests = []

    def _hear(self, *what):
        self.told.append(what)
        if what == self._raise_at:
            raise self._error

    def prepared(self, facts):
        self._hear("prepared")

    def step_begun(self, step, step_kind):
        self._hear("step_begun", step)

    def waiting(self, reason, wait_s):
        self._hear("waiting", reason, wait_s)

    def stopping(self, reason):
        self._hear("stopping", reason)

    def evaluating(self, step, proposal):
        self._hear("evaluating", step)

    def remeasuring(self, step, proposal):
        self._hear("remeasuring", step)

    def recorded(self, node, *, best):
        self.nodes.append(node)
        if best:
            self.bests.append(node.id)
        self._hear("recorded", node.id)

    def confirming(self, node):
        self._hear("confirming")


SETTINGS = Config(policy="uct", p_large=0.4, pool_size=2, extra_max=1, window=3, recheck=False)


def record(steps=STEPS, **settings) -> RunRecord:
    return RunRecord(
        problem=Problem("example", "class Model: ...", "cpp", "cpu"),
        config=SETTINGS.model_copy(update=settings).model_copy(update={"seed": 5, "steps": steps}),
        proposers=("fake",),
        environment=Environment(),
        command="adaexplore explore example.py",
        created_at=0.0,
    )


class Run:
    """A run directory and the sessions in it."""

    def __init__(self, path, run: RunRecord) -> None:
        self.path = path
        create_run(path, run).close()
        self.proposer = FakeProposer()
        self.evaluator = FakeEvaluator()

    def search(self, listener=None, spent=lambda: None):
        """Run one session, from opening the directory to its end."""
        listener = listener or Listener()
        with open_run(self.path) as directory:
            proposers = {"fake": self.proposer}
            search = Search(
                directory.store,
                proposers,
                self.evaluator,
                directory.best_path,
                sleep=lambda _: None,
                spent=spent,
            )
            listener_module.follow(search.run(), listener)
        return listener

    def nodes(self):
        with open_run(self.path) as directory:
            return directory.store.nodes()

    def tree(self):
        """Return the nodes without the times of day."""
        return [replace(node, started_at=0.0, propose_s=0.0) for node in self.nodes()]

    def confirmation(self):
        """Return the last node."""
        with open_run(self.path) as directory:
            return next(reversed(directory.store.confirmations()), None)

    @property
    def best_source(self):
        path = self.path / "best.py"
        return path.read_text() if path.exists() else None


@pytest.fixture
def new_run(tmp_path_factory):
    return lambda **options: Run(tmp_path_factory.mktemp("runs") / "run", record(**options))


@pytest.fixture(scope="module")
def whole_tree(tmp_path_factory):
    """The tree of an uninterrupted run."""
    run = Run(tmp_path_factory.mktemp("runs") / "whole", record())
    run.search()
    return run.tree()


def best_of(nodes):
    """The first of the best."""
    right = [node for node in nodes if isinstance(node.evaluation, Passed)]
    return max(right, key=lambda node: (rank(node.evaluation), -node.id), default=None)


class TestTree:
    def test_the_tree_has_every_step_and_every_kind_of_step(self, whole_tree):
        assert [node.id for node in whole_tree] == list(range(1, STEPS + 1))
        assert {node.step_kind for node in whole_tree} == {"large", "small"}
        assert {True, False} == {node.reused for node in whole_tree}
        assert any(node.proposal.failure for node in whole_tree)
        assert any(node.proposal.settings["pool"] for node in whole_tree)

    def test_parents_come_before_their_children(self, whole_tree):
        for node in whole_tree:
            assert ROOT_ID <= node.parent_id < node.id
            assert node.parent_id != ROOT_ID or node.step_kind == "large"

    def test_a_small_step_is_shown_the_path_that_ends_at_its_parent(self, whole_tree):
        small = [node for node in whole_tree if node.step_kind == "small"]
        for node in small:
            window = node.proposal.settings["window"]
            assert window[-1] == node.parent_id
            assert len(window) <= SETTINGS.window
            assert node.proposal.settings["pool"] == []

    def test_a_large_step_is_shown_right_kernels_only(self, whole_tree):
        for node in whole_tree:
            pool = node.proposal.settings["pool"]
            assert len(pool) <= SETTINGS.pool_size
            assert all(isinstance(whole_tree[i - 1].evaluation, Passed) for i in pool)

    def test_every_step_sees_all_that_came_before(self, whole_tree):
        assert [node.proposal.settings["history"] for node in whole_tree] == list(range(STEPS))

    def test_another_seed_gives_another_tree(self, tmp_path, whole_tree):
        run = Run(
            tmp_path / "other",
            replace(record(), config=record().config.model_copy(update={"seed": 6})),
        )
        run.search()
        assert run.tree() != whole_tree


class TestStoppingAndResuming:
    @pytest.mark.parametrize("moment", ["step_begun", "evaluating", "recorded"])
    def test_interruptions_at_every_step_do_not_change_the_tree(self, new_run, whole_tree, moment):
        run = new_run()
        for step in range(1, STEPS + 1):
            with pytest.raises(KeyboardInterrupt):
                run.search(Listener(raise_at=(moment, step)))
            assert len(run.nodes()) == (step if moment == "recorded" else step - 1)
        run.search()
        assert run.tree() == whole_tree

    @pytest.mark.parametrize("moment", ["prepared", "confirming"])
    def test_interruptions_outside_the_steps_do_not_change_the_tree(
        self, new_run, whole_tree, moment
    ):
        run = new_run()
        with pytest.raises(KeyboardInterrupt):
            run.search(Listener(raise_at=(moment,)))
        run.search()
        assert run.tree() == whole_tree
        assert run.confirmation().node_id == best_of(whole_tree).id

    def test_recorded_steps_never_change(self, new_run):
        run = new_run()
        with pytest.raises(KeyboardInterrupt):
            run.search(Listener(raise_at=("evaluating", 12)))
        before = run.nodes()
        run.search()
        assert run.nodes()[:11] == before

    def test_more_steps_continue_the_same_tree(self, new_run, whole_tree):
        run = new_run(steps=10)
        run.search()
        with open_run(run.path) as directory:
            directory.store.set_config(directory.store.run().config.with_steps(STEPS))
        run.search()
        assert run.tree() == whole_tree

    def test_a_finished_run_does_nothing_more(self, new_run):
        run = new_run()
        run.search()
        proposed, evaluated = len(run.proposer.contexts), len(run.evaluator.evaluated)
        told = run.search().told
        assert told == [("prepared",)]
        assert len(run.proposer.contexts) == proposed
        assert len(run.evaluator.evaluated) == evaluated


class TestAnswered:
    """Answers that are there when a search ends were paid for: they are judged."""

    @pytest.mark.parametrize("why", ["the money is spent", "near the roofline"])
    def test_a_queued_answer_is_judged_though_the_search_ends(self, new_run, monkeypatch, why):
        run = new_run(confirm=False)
        with pytest.raises(KeyboardInterrupt):
            run.search(Listener(raise_at=("evaluating", 5)))
        monkeypatch.setattr(
            "adaexplore.run.search.stop_reason", lambda *_: why if "roof" in why else None
        )
        spent = why if "money" in why else None
        listener = run.search(spent=lambda: spent)
        assert [node.id for node in listener.nodes] == [5]
        assert ("stopping", why) in listener.told
        assert len(run.proposer.contexts) == 5

    def test_a_reply_that_a_kill_kept_from_its_proposal_is_judged(self, new_run, monkeypatch):
        run = new_run(confirm=False)
        run.proposer = Answered()
        with open_run(run.path) as directory:
            ledger = Ledger(directory.store, {"fake": run.proposer})
            ask, prompt = ledger.prompt("fake")
            ledger.keep(ask.id, prompt, Reply("class ModelNew: number = 1", "some:model"))
            ledger.prompt("fake")  # without a reply
        listener = run.search(spent=lambda: "time is over")
        assert [node.candidate.source for node in listener.nodes] == ["class ModelNew: number = 1"]
        with open_run(run.path) as directory:
            assert [record.ask.id for record in directory.store.asks("open")] == [2]


class Answered(FakeProposer):
    """A proposer that takes the one reply as the source."""

    def begin(self, context):
        reply = yield Prompt((Message("user", "Faster!"),), "large")
        return Proposal(Candidate(reply.text, "cpp"), "fake", "answered")


class TestTrouble:
    @pytest.mark.parametrize("part", ["begin", "evaluate"])
    def test_lost_machinery_leaves_what_was_recorded(self, new_run, whole_tree, part, monkeypatch):
        run = new_run()

        def lost(*asked, **_):
            if len(run.proposer.contexts) < 9:
                return original(*asked)
            raise InfrastructureError("the machine is gone")

        owner = run.proposer if part == "begin" else run.evaluator
        original = getattr(owner, part)
        with monkeypatch.context() as patch:
            patch.setattr(owner, part, lost)
            with pytest.raises(InfrastructureError, match="the machine is gone"):
                run.search()
        recorded = run.tree()
        assert recorded == whole_tree[: len(recorded)]
        assert len(recorded) >= 8
        run.search()
        assert run.tree() == whole_tree

    def test_a_bad_reference_is_found_before_the_first_step(self, new_run, monkeypatch):
        run = new_run()

        def prepare():
            raise BadProblemError("example.py: NaN")

        monkeypatch.setattr(run.evaluator, "prepare", prepare)
        with pytest.raises(BadProblemError):
            run.search()
        assert run.nodes() == []
        assert run.proposer.contexts == []


class TestEvaluating:
    def test_a_duplicate_takes_over_its_evaluation(self, new_run):
        run = new_run(confirm=False)
        run.search()
        assert len(run.evaluator.evaluated) == len(set(run.evaluator.evaluated))
        first = {}
        for node in run.nodes():
            if node.proposal.failure:
                continue
            original = first.setdefault(node.candidate.digest, node)
            assert node.reused == (node is not original)
            assert node.evaluation == original.evaluation

    def test_a_candidate_is_measured_beside_the_parent_that_passed(self, new_run):
        run = new_run(confirm=False)
        run.search()
        nodes = run.nodes()
        seen = [node for node in nodes if not node.reused and not node.proposal.failure]
        wanted = []
        for node in seen:
            parent = nodes[node.parent_id - 1] if node.parent_id else None
            right = parent is not None and isinstance(parent.evaluation, Passed)
            wanted.append(parent.candidate.source if right else None)
        assert run.evaluator.parents == wanted
        assert None in wanted
        assert len(set(wanted)) > 2

    def test_a_parent_from_before_an_interruption_is_measured_too(self, new_run):
        run = new_run(confirm=False)
        with pytest.raises(KeyboardInterrupt):
            run.search(Listener(raise_at=("recorded", 15)))
        run.search()
        assert len(run.evaluator.evaluated) == len(set(run.evaluator.evaluated))

    def test_infrastructure_trouble_is_not_reused(self, new_run, monkeypatch):
        run = new_run(confirm=False)
        run.proposer.variety = 1
        verdicts = iter([Failed("infra_error", "no luck")] * 2)
        original = run.evaluator.evaluate
        monkeypatch.setattr(
            run.evaluator, "evaluate", lambda *asked, **_: next(verdicts, None) or original(*asked)
        )
        run.search()
        nodes = [node for node in run.nodes() if not node.proposal.failure]
        assert [node.evaluation.status for node in nodes[:2]] == ["infra_error"] * 2
        assert not nodes[2].reused
        assert all(node.reused for node in nodes[3:])

    def test_a_failed_proposal_is_rejected_without_evaluation(self, new_run):
        run = new_run()
        run.search()
        empty = [node for node in run.nodes() if node.proposal.failure]
        assert empty
        assert {node.evaluation for node in empty} == {Failed("rejected", "no idea")}
        assert not any(node.reused for node in empty)
        assert "" not in run.evaluator.evaluated


class TestBest:
    def test_best_py_is_the_best_so_far_at_every_moment(self, new_run):
        run = new_run()
        seen = []

        class Watching(Listener):
            def recorded(self, node, *, best):
                super().recorded(node, best=best)
                seen.append(run.best_source)

        listener = run.search(Watching())
        for count, source in enumerate(seen, start=1):
            best = best_of(listener.nodes[:count])
            assert source == (best.candidate.source if best else None)

    def test_events_name_the_best_step_so_far(self, new_run):
        listener = new_run().search()
        expected = {
            best.id
            for count in range(1, STEPS + 1)
            if (best := best_of(listener.nodes[:count])) is not None
        }
        assert listener.bests == sorted(expected)

    def test_a_run_that_found_nothing_has_no_best(self, new_run, monkeypatch):
        run = new_run()
        monkeypatch.setattr(
            run.evaluator, "evaluate", lambda *_, **__: Failed("timeout", "too slow")
        )
        listener = run.search()
        assert run.best_source is None
        assert run.confirmation() is None
        assert listener.bests == []

    def test_resuming_writes_best_py_after_a_kill(self, new_run, whole_tree):
        run = new_run()
        with pytest.raises(KeyboardInterrupt):
            run.search(Listener(raise_at=("recorded", 20)))
        (run.path / "best.py").unlink()
        with pytest.raises(KeyboardInterrupt):
            run.search(Listener(raise_at=("step_begun", 21)))
        assert run.best_source == best_of(whole_tree[:20]).candidate.source


class TestConfirmation:
    def test_the_winner_is_evaluated_again_and_kept(self, new_run, whole_tree):
        run = new_run()
        listener = run.search()
        confirmation = run.confirmation()
        winner = best_of(whole_tree)
        assert confirmation.node_id == winner.id
        assert run.evaluator.evaluated.count(winner.candidate.source) == 2
        assert listener.told[-1] == ("confirming",)

    def test_confirmation_can_be_switched_off(self, new_run):
        run = new_run(confirm=False)
        run.search()
        assert run.confirmation() is None

    def test_a_new_winner_is_confirmed_again(self, new_run, whole_tree):
        run = new_run(steps=best_of(whole_tree).id - 1)
        run.search()
        earlier = run.confirmation()
        with open_run(run.path) as directory:
            directory.store.set_config(directory.store.run().config.with_steps(STEPS))
        run.search()
        assert run.confirmation().node_id == best_of(whole_tree).id != earlier.node_id


class Trying(FakeEvaluator):
    """An evaluator that also tries uses: one of them is wrong."""

    USES = (Use("pickle", "holds"), Use("two instances", "wrong", "coding: no-such-encoding"))

    def __init__(self) -> None:
        super().__init__()
        self.tried = []

    def try_uses(self, candidate):
        self.tried.append(candidate.source)
        return self.USES


class TestUses:
    @pytest.fixture
    def run(self, new_run):
        run = new_run()
        run.evaluator = Trying()
        return run

    def test_those_of_the_confirmed_winner_are_tried_once_and_kept(self, run, whole_tree):
        run.search()
        assert run.confirmation().evaluation.uses == Trying.USES
        assert run.evaluator.tried == [best_of(whole_tree).candidate.source]
        run.search()
        assert len(run.evaluator.tried) == 1

    def test_those_of_a_winner_that_is_not_confirmed_are_not_tried(self, run):
        with open_run(run.path) as directory:
            config = directory.store.run().config
            directory.store.set_config(config.model_copy(update={"confirm": False}))
        run.search()
        assert run.evaluator.tried == []

    def test_best_py_says_them_above_the_source(self, run, whole_tree):
        run.search()
        source = best_of(whole_tree).candidate.source
        header = run.best_source.removesuffix(source).splitlines()
        assert header[2:] == [
            "# - SILENTLY WRONG: two instances (coding: no-such-encoding)",
            "# - holds in use: pickle",
        ]
        compile((run.path / "best.py").read_bytes(), "best.py", "exec")  # no encoding is declared

    def test_an_evaluator_that_cannot_try_them_is_not_asked(self, new_run, whole_tree):
        run = new_run()
        run.search()
        assert run.confirmation().evaluation.uses == ()
        assert run.best_source == best_of(whole_tree).candidate.source


class Noisy(FakeEvaluator):
    """An evaluator whose times differ by up to 20 % from one measurement to the next."""

    def evaluate(self, candidate, parent=None, *, again=False):
        evaluation = super().evaluate(candidate, parent)
        if not isinstance(evaluation, Passed):
            return evaluation
        noise = number_from(candidate.digest, self.evaluated.count(candidate.source)) % 41 - 20
        speedup = evaluation.timing.speedup * (1 + noise / 100)
        timing = replace(
            evaluation.timing, speedup=speedup, speedup_ci=(0.8 * speedup, 1.2 * speedup)
        )
        return replace(evaluation, timing=timing, cost=Cost(2.0, 1.0))


class TestNoise:
    @pytest.fixture
    def noisy(self, new_run):
        def make(**settings):
            run = new_run(**{"recheck": True, **settings})
            run.evaluator = Noisy()
            return run

        return make

    def test_a_new_leader_is_measured_twice_and_the_slower_time_counts(self, noisy):
        run = noisy(confirm=False)
        listener = run.search()
        best, rechecked = None, []
        for node in run.nodes():
            first, *again = node.repeats or (node.evaluation,)
            speedup = first.timing.speedup if isinstance(first, Passed) else 0.0
            assert bool(again) == (not node.reused and speedup > max(best or 0.0, 1.0))
            if again:
                rechecked.append(node.id)
                assert node.evaluation.timing == min(
                    (one.timing for one in node.repeats), key=lambda timing: timing.speedup
                )
                assert node.evaluation.cost == Cost(4.0, 2.0)
            if isinstance(node.evaluation, Passed):
                best = max(best or 0.0, node.evaluation.timing.speedup)
        assert [step for what, step, *_ in listener.told[1:] if what == "remeasuring"] == rechecked
        assert len(rechecked) >= 2

    def test_an_interrupted_remeasurement_does_not_change_the_tree(self, noisy):
        whole = noisy(confirm=False)
        step = next(told[1] for told in whole.search().told if told[0] == "remeasuring")
        run = noisy(confirm=False)
        with pytest.raises(KeyboardInterrupt):
            run.search(Listener(raise_at=("remeasuring", step)))
        assert len(run.nodes()) == step - 1
        run.evaluator = Noisy()
        run.evaluator.evaluated = [
            source for node in run.nodes() for source in [node.candidate.source] if not node.reused
        ]
        run.search()
        assert run.tree() == whole.tree()

    def test_the_published_search_measures_once(self, noisy):
        run = noisy(confirm=False, reward="published")
        run.search()
        assert not any(node.repeats for node in run.nodes())

    def test_the_best_confirmed_step_wins(self, noisy):
        run = noisy(recheck=False, confirm_top=3)
        run.search()
        with open_run(run.path) as directory:
            confirmed = directory.store.confirmations()
        nodes = run.nodes()
        right = [n for n in nodes if isinstance(n.evaluation, Passed) and not n.reused]
        fastest = sorted(right, key=lambda node: -node.evaluation.timing.speedup)
        attempts = [node.id for node in fastest[:3] for _ in range(3)]  # all are noisy
        assert [one.node_id for one in confirmed] == attempts
        counted = {one.node_id: one.evaluation for one in confirmed[::3]}  # all are as wide
        winner = max(counted, key=lambda node_id: counted[node_id].timing.speedup)
        assert winner != confirmed[0].node_id
        assert run.best_source == nodes[winner - 1].candidate.source
        assert run.search().told == [("prepared",)]
        assert run.best_source == nodes[winner - 1].candidate.source


class Numbered(FakeProposer):
    """A proposer of kernels with two numbers."""

    def begin(self, context):
        proposal = yield from super().begin(context)
        numbers = 'S = "constexpr int TILE = 16; constexpr int UNROLL = 2;"'
        source = f"{proposal.candidate.source}\n{numbers}\n"
        return replace(proposal, candidate=Candidate(source, "cpp"))


class TestTuning:
    @pytest.fixture
    def tuned(self, new_run):
        def make(**settings):
            run = new_run(**{"steps": 8, "tune": 12, "confirm": False, **settings})
            run.proposer = Numbered()
            return run

        return make

    def test_the_winners_numbers_are_varied_after_the_planned_steps(self, tuned):
        run = tuned()
        run.search()
        searched, variants = run.nodes()[:8], run.nodes()[8:]
        base = best_of(searched)
        assert len(variants) == 12
        assert {(n.step_kind, n.parent_id, n.proposal.origin) for n in variants} == {
            ("tune", base.id, "tuner")
        }
        assert len({n.candidate.source for n in variants} | {base.candidate.source}) == 13
        assert len(run.evaluator.evaluated) == len(set(run.evaluator.evaluated))
        assert run.best_source == best_of(run.nodes()).candidate.source

    @pytest.mark.parametrize("moment", ["step_begun", "evaluating", "recorded"])
    def test_an_interrupted_tuning_continues_unchanged(self, tuned, moment):
        whole, run = tuned(), tuned()
        whole.search()
        for step in (9, 14, 20):
            with pytest.raises(KeyboardInterrupt):
                run.search(Listener(raise_at=(moment, step)))
        run.search()
        assert run.tree() == whole.tree()

    def test_a_new_winner_after_more_steps_is_tuned(self, tuned):
        run = tuned(steps=6, tune=2)
        run.search()
        with open_run(run.path) as directory:
            directory.store.set_config(directory.store.run().config.with_steps(20))
        run.search()
        nodes = run.nodes()
        assert sum(node.step_kind != "tune" for node in nodes) == 20
        by_base = {n.parent_id for n in nodes if n.step_kind == "tune"}
        for base in by_base:
            assert sum(n.parent_id == base and n.step_kind == "tune" for n in nodes) == 2
        assert run.search().told == [("prepared",)]

    def test_a_kernel_without_numbers_is_not_tuned(self, new_run):
        run = new_run(steps=8, tune=5, confirm=False)
        told = run.search().told
        assert told[-1] == ("stopping", f"step {best_of(run.nodes()).id} has no numbers to tune")
        assert len(run.nodes()) == 8


def test_the_facts_about_the_reference_are_stored(new_run):
    run = new_run(steps=1)
    run.search()
    with open_run(run.path) as directory:
        assert directory.store.run().reference == FACTS
