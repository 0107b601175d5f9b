"""A search under the published settings against the published formulas, node for node.

`Published` below is written from the formulas alone and shares no code with `adaexplore.search`:
statistics are sums over lists, found anew for every step. It draws from the same generator in the
same order: the kind of a step, a pool that is too large, the number of extra kernels, the extras.
"""

import hashlib
import math
import random
from dataclasses import dataclass

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.config import Config
from adaexplore.core.environment import Environment
from adaexplore.core.evaluation import Failed, Passed, Timing
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.run.study import Study
from adaexplore.store import RunRecord, create_run

STEPS = 240
SEED = 11

LEVEL_2 = {"c": 0.3, "expand_ratio": 1.0, "alpha": 0.0, "p_large": 0.2, "extra_max": 0}
LEVEL_3 = {**LEVEL_2, "expand_ratio": 0.5}
ADAPT = {"c": 0.25, "expand_ratio": 1.0, "alpha": 1.0, "p_large": 0.25, "extra_max": 3}
SMALL_LIMIT, POOL_SIZE, WINDOW, EXTRA_P = 2, 5, 5, 0.5


@dataclass
class Recorded:
    """The record of a step: ("no module" | "no kernel" | "wrong" | "correct", speedup over eager).

    Without a kernel the module was imported, and Triton failed at its first call: that counts as
    compiled and wrong.
    """

    parent: int
    kind: str
    outcome: str
    speedup: float

    @property
    def reward(self):
        if self.outcome == "no module":
            return 0.0
        if self.outcome in ("no kernel", "wrong"):
            return 0.05
        return 0.4 + 1.2 * (min(max(self.speedup, 0.1), 10.0) - 0.1) / 9.9


class Published:
    """The formulas, over steps 1, 2, ...; 0 is the empty root."""

    def __init__(self, c, expand_ratio, alpha, p_large, extra_max):
        self.c, self.ratio, self.alpha = c, expand_ratio, alpha
        self.p_large, self.extra_max = p_large, extra_max
        self.steps = []

    def next(self, number):
        """Parent, kind, pool and window of the step of that number."""
        digest = hashlib.sha256(f"{SEED}/{number}".encode()).digest()
        rng = random.Random(int.from_bytes(digest, "big"))
        parent = self.descend(0)
        small = [child for child in self.children(parent) if self.step(child).kind == "small"]
        if parent == 0 or len(small) >= SMALL_LIMIT or rng.random() < self.p_large:
            return parent, "large", self.pool(parent, rng), ()
        return parent, "small", (), self.window(parent)

    def descend(self, node):
        children = self.children(node)
        if not children:
            return node  # a leaf always expands
        visits = len(self.rewards(node))
        scores = [
            self.q(child) + self.c * math.sqrt(math.log(visits) / len(self.rewards(child)))
            for child in children
        ]
        expand = max(self.q(child) for child in children)
        expand += self.c * self.ratio * math.sqrt(math.log(visits)) / len(children)
        if expand > max(scores):
            return node
        return self.descend(children[scores.index(max(scores))])

    def q(self, node):
        rewards = self.rewards(node)
        return self.alpha * max(rewards) + (1 - self.alpha) * (sum(rewards) / len(rewards))

    def rewards(self, node):
        """Return the rewards of a subtree in the order of recording; the root has no reward."""
        inside, found = {node}, [self.step(node).reward] if node else []
        for number in range(node + 1, len(self.steps) + 1):
            if self.step(number).parent in inside:
                inside.add(number)
                found.append(self.step(number).reward)
        return found

    def pool(self, node, rng):
        on_path = [step for step in self.path(node) if self.step(step).kind == "large"]
        pool = [best for step in on_path if (best := self.best_of_component(step))]
        if len(pool) > POOL_SIZE:
            chosen = rng.sample(pool, POOL_SIZE)
            return tuple(kernel for kernel in pool if kernel in chosen)
        most = min(self.extra_max, POOL_SIZE - len(pool))
        weights = [(1 - EXTRA_P) ** k for k in range(most + 1)]
        [count] = rng.choices(range(most + 1), weights)
        others = {}  # by the first correct kernel of each component, as they were found
        for number in range(1, len(self.steps) + 1):
            head = self.head(number)
            if self.step(number).outcome == "correct" and head not in on_path:
                others.setdefault(head, self.best_of_component(head))
        rest = list(others.values())
        for _ in range(min(count, len(rest))):
            top = max(self.step(kernel).speedup for kernel in rest)
            shares = [math.exp(self.step(kernel).speedup - top) for kernel in rest]
            pool.append(rest.pop(rng.choices(range(len(rest)), shares)[0]))
        return tuple(pool)

    def best_of_component(self, head):
        """The first of its fastest correct kernels; None where none is correct."""
        members = [
            number
            for number in range(1, len(self.steps) + 1)
            if self.head(number) == head and self.step(number).outcome == "correct"
        ]
        return max(members, key=lambda number: self.step(number).speedup, default=None)

    def head(self, node):
        """The large step whose component the node is in: small edges lead from it to the node."""
        while self.step(node).kind == "small":
            node = self.step(node).parent
        return node

    def window(self, node):
        path = [node]
        while self.step(path[0]).kind == "small":
            path.insert(0, self.step(path[0]).parent)
        return tuple(path[-WINDOW:])

    def path(self, node):
        return [*self.path(self.step(node).parent), node] if node else []

    def children(self, node):
        return [i for i, step in enumerate(self.steps, 1) if step.parent == node]

    def step(self, number):
        return self.steps[number - 1]


def landscape(number, parent, kind):
    """The recorded evaluation of a step: fixed, uneven, and small steps stay near their parent."""
    draw = random.Random(f"landscape/{number}")
    fate = draw.random()
    if fate < 0.1:
        return "no module", 0.0
    if fate < 0.2:
        return "no kernel", 0.0
    if fate < 0.35:
        return "wrong", 0.0
    if kind == "small" and parent is not None and parent.outcome == "correct":
        return "correct", parent.speedup * draw.uniform(0.8, 1.35)
    return "correct", draw.choice([0.02, 0.5, 0.9, 1.0, 1.0, 1.3, 2.0, 4.0]) * draw.uniform(
        0.9, 1.1
    )


def evaluation(outcome, speedup):
    """The evaluation; like for like, kernels are ordered otherwise, with wide intervals."""
    if outcome in ("no module", "no kernel"):
        return Failed("compile_error", "as recorded", loaded=outcome == "no kernel")
    if outcome == "wrong":
        return Failed("wrong_output", "as recorded")
    like_for_like = 1 / speedup
    interval = (0.5 * like_for_like, 2 * like_for_like)
    baselines_us = {"eager": speedup, "compile": like_for_like}
    timing = Timing(1.0, (1.0, 1.0), baselines_us, like_for_like, interval, speedup, 100)
    return Passed("fp32", 1e-7, timing)


class Silent:
    """A proposer that asks no model; each seventh kernel is one that it has proposed before."""

    def begin(self, context):
        number = 3 if context.seed % 7 == 0 else context.seed
        return Proposal(Candidate(f"kernel {number}", "cpp"), "silent", "")
        yield

    def close(self):
        pass


@pytest.mark.parametrize(
    ("preset", "published"),
    [
        pytest.param("adaexplore", LEVEL_2, id="level-2"),
        pytest.param("adaexplore-l3", LEVEL_3, id="level-3", marks=pytest.mark.slow),
        pytest.param("adaexplore-adapt", ADAPT, id="adapt", marks=pytest.mark.slow),
    ],
)
def test_every_step_grows_where_the_formulas_say(tmp_path, preset, published):
    settings = Config(preset=preset)
    record = RunRecord(
        problem=Problem("example", "class Model: ...", "cpp", "cpu"),
        config=settings.model_copy(update={"seed": SEED, "steps": STEPS}),
        proposers=("silent",),
        environment=Environment(),
        command="",
        created_at=0.0,
    )
    reference = Published(**published)
    kinds, judged, repeats = set(), {}, 0
    with create_run(tmp_path / "run", record) as run:
        study = Study(run.store, {"silent": Silent()})
        for number in range(1, STEPS + 1):
            parent, kind, pool, window = reference.next(number)
            ask = study.ask("silent")
            assert (ask.parent_id, ask.step_kind) == (parent, kind), f"step {number}"
            assert (ask.pool, ask.window) == (pool, window), f"step {number}"
            above = reference.step(parent) if parent else None
            _, proposal = study.turn(ask.id)
            source = proposal.candidate.source
            repeats += source in judged
            outcome, speedup = judged.setdefault(source, landscape(number, above, kind))
            reference.steps.append(Recorded(parent, kind, outcome, speedup))
            known = study.cached(proposal)
            verdict = known or evaluation(outcome, speedup)
            study.record(ask, proposal, verdict, reused=known is not None)
            kinds.add((kind, parent == 0, len(pool) > 1, len(window) > 1))
        assert [node.parent_id for node in study.nodes] == [s.parent for s in reference.steps]
    assert repeats > 10
    assert len(kinds) >= 5  # steps of every sort, so that the trace means something
