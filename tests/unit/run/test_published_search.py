"""A search under the published presets against the publication, node for node, prompt for prompt.

`Published` and `Baseline` below are written from the publication alone and share no code with
`adaexplore.search` and `adaexplore.propose`: statistics are sums over lists, found anew for every
step. They draw from the same generator in the same order: the kind of a step, a pool that is too
large, the number of extra kernels, the extras; the elites of IRLE.
"""

import hashlib
import math
import random
import re
from dataclasses import dataclass
from functools import partial

import pytest

from adaexplore.core.environment import Environment
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.client import Prompt, Reply
from adaexplore.core.rule import Rule, Signature
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.run.asks.ledger import Ledger
from adaexplore.run.proposers import Plan, model_proposers
from adaexplore.store import RunRecord, create_run

STEPS = 240
FEW = 12
SEED = 11

LEVEL_2 = {"c": 0.3, "expand_ratio": 1.0, "alpha": 0.0, "p_large": 0.2, "extra_max": 0}
LEVEL_3 = {**LEVEL_2, "expand_ratio": 0.5}
ADAPT = {
    **{"c": 0.25, "expand_ratio": 1.0, "alpha": 1.0, "p_large": 0.25, "extra_max": 3},
    "reviser": False,
}
MANY_LARGE = {**LEVEL_2, "p_large": 0.75, "alpha": 1.0}
SMALL_LIMIT, POOL_SIZE, WINDOW, EXTRA_P = 2, 5, 5, 0.5

REFERENCE = "class Model:\n    pass\n"
THRESHOLD = 3
RULES = tuple(
    Rule(f"r{count}", "compile", f"Rule seen {word}.", "", "", "", Signature(""), support=count)
    for count, word in [(12, "often"), (2, "twice"), (3, "thrice"), (1, "once")]
)


@dataclass
class Recorded:
    """The record of a step: ("no module" | "no kernel" | "wrong" | "correct", speedup over eager),
    and the source, empty where the reply had none.

    Without a kernel the module was imported, and Triton failed at its first call: that counts as
    compiled and wrong.
    """

    parent: int
    kind: str
    outcome: str
    speedup: float
    source: str

    @property
    def reward(self):
        if self.outcome == "no module":
            return 0.0
        if self.outcome in ("no kernel", "wrong"):
            return 0.05
        return 0.4 + 1.2 * (min(max(self.speedup, 0.1), 10.0) - 0.1) / 9.9


def generator_of(number):
    """The generator of a step."""
    digest = hashlib.sha256(f"{SEED}/{number}".encode()).digest()
    return random.Random(int.from_bytes(digest, "big"))


class Published:
    """The formulas, over steps 1, 2, ...; 0 is the empty root."""

    forms = frozenset({"large", "patch"})
    sorts = 5  # of steps, at least, so that the trace means something

    def __init__(self, c, expand_ratio, alpha, p_large, extra_max, reviser=True):
        self.reviser = reviser
        self.c, self.ratio, self.alpha = c, expand_ratio, alpha
        self.p_large, self.extra_max = p_large, extra_max
        self.steps, self.sampled = [], False

    def next(self, number):
        """Parent, kind, pool and window of the step of that number."""
        rng = generator_of(number)
        parent = self.descend(0)
        small = [child for child in self.children(parent) if self.step(child).kind == "small"]
        if parent == 0 or len(small) >= SMALL_LIMIT or rng.random() < self.p_large:
            return parent, "large", self.pool(parent, rng), ()
        return parent, "small", (), self.window(parent)

    def prompts(self, kind, pool, window):
        """The kernels of each prompt of a step, in order, by the prompt's name.

        A kernel without a module cannot be patched: its step is answered by a module.
        """
        if kind == "large":
            return {"large": pool}
        shown = [number for number in window if self.step(number).source]
        right = [number for number in shown if self.step(number).outcome == "correct"]
        if not self.step(window[-1]).source:
            return {"large": right}
        if self.reviser and right:
            return {"small.reviser": window[-1:], "small.tuner": shown}
        return {"small.tuner": shown}

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
            self.sampled = True
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
        return (*pool, *self.drawn(rest, count, rng))

    def drawn(self, rest, count, rng):
        """Draw kernels by a softmax of their speedups, without replacement."""
        chosen = []
        for _ in range(min(count, len(rest))):
            top = max(self.step(kernel).speedup for kernel in rest)
            shares = [math.exp(self.step(kernel).speedup - top) for kernel in rest]
            chosen.append(rest.pop(rng.choices(range(len(rest)), shares)[0]))
        return tuple(chosen)

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


class Baseline(Published):
    """The paper's baselines. The parameters of the tree are of no effect.

    IRS refines the last kernel. The others write new modules: PS sees nothing, IRL the last
    kernels, IRB the best by (compiled, correct, speedup), IRLE first correct ones that are drawn,
    then the last. Failed kernels are shown like others, except among the drawn.
    """

    def __init__(self, policy):
        super().__init__(**LEVEL_2)
        self.policy = policy
        self.forms = frozenset({"large", "patch"} if policy == "irs" else {"large"})
        self.sorts = {"ps": 1, "irs": 3}.get(policy, 2)

    def next(self, number):
        if self.policy == "irs" and number > 1:
            return number - 1, "small", (), self.window(number - 1)
        return 0, "large", self.context(generator_of(number)), ()

    def context(self, rng):
        every = list(range(1, len(self.steps) + 1))
        best = sorted(every, key=self.order)
        match self.policy:
            case "irl":
                return tuple(every[-POOL_SIZE:])
            case "irb":
                return tuple(best[:POOL_SIZE])
            case "irle":
                recent = tuple(every[-(POOL_SIZE // 2) :])
                rest = [kernel for kernel in best if kernel not in recent]
                rest = [kernel for kernel in rest if self.step(kernel).outcome == "correct"]
                return (*self.drawn(rest, POOL_SIZE - POOL_SIZE // 2, rng), *recent)
        return ()

    def order(self, number):
        """Best first, and the older of equals first."""
        step = self.step(number)
        compiled = step.outcome != "no module"
        return not compiled, step.outcome != "correct", -step.speedup, number


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
        return "correct", parent.speedup * draw.uniform(0.95, 1.8)
    return "correct", draw.choice([0.02, 0.5, 0.9, 1.0, 1.0, 1.3, 2.0, 4.0]) * draw.uniform(
        0.9, 1.1
    )


def evaluation(outcome, speedup):
    """The evaluation; like for like, kernels are ordered otherwise, with wide intervals."""
    if outcome in ("no module", "no kernel"):
        return Failed("compile_error", "as recorded", "its log", loaded=outcome == "no kernel")
    if outcome == "wrong":
        return Failed("wrong_output", "as recorded")
    like_for_like = 1 / speedup
    interval = (0.5 * like_for_like, 2 * like_for_like)
    baselines_us = {"eager": speedup, "compile": like_for_like}
    timing = Timing(1.0, (1.0, 1.0), baselines_us, like_for_like, interval, speedup, 100)
    return Passed("fp32", 1e-7, timing)


def answer(prompt, number):
    """A reply that depends on the step alone: now and then one without a module, or a stray patch.

    A patched kernel differs by a number, and may be one that there was before.
    """
    if prompt.label == "small.reviser":
        return f"Guidance {number}: unroll."
    if prompt.label == "small.tuner":
        old = re.findall(r"number = \d+", prompt.messages[-1].text)[-1]
        old = "nowhere" if number % 11 == 0 else f"    {old}"
        new = number // 7 if number % 7 == 0 else number
        return f"Idea {number}.\n<<<<<<< OLD\n{old}\n=======\n    number = {new}\n>>>>>>> NEW"
    if number % 13 == 0:
        return "I have no idea."
    return f"Idea {number}.\n```python\nclass ModelNew:\n    number = {number}\n```"


def carried_out(reply, current):
    """The module that a reply makes of the current one, which a stray patch leaves as it is."""
    if module := re.search(r"```python\n(.*)```", reply, re.DOTALL):
        return module[1]
    patch = re.search(r"OLD\n(.*)\n=======\n(.*)\n>>>>>>>", reply, re.DOTALL)
    return current.replace(patch[1], patch[2]) if patch else ""


def fenced(text):
    """The contents of the fenced blocks of a text, and its other lines."""
    blocks = re.findall(r"^```(\w*)\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL)
    outside = re.sub(r"^```(\w+)\n.*?\n```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [body for language, body in blocks if language], outside.splitlines()


def assert_shows(prompt, published, kernels, guidance):
    """Assert that a prompt shows the reference, the memory, these kernels, and nothing else."""
    blocks, lines = fenced(prompt.messages[-1].text)
    reference, *shown = blocks
    assert reference == REFERENCE.rstrip()
    assert shown[::2] == [published.step(number).source.rstrip() for number in kernels]
    for number, measured in zip(kernels, shown[1::2], strict=True):
        step = published.step(number)
        if step.outcome == "correct":
            [over_eager] = re.findall(r"compiled, correct, .*, (.*)× over eager", measured)
            assert float(over_eager) == pytest.approx(step.speedup, rel=0.03, abs=0.006)
        elif step.outcome == "no module":
            assert measured == "not compiled: as recorded\nits log"
        else:
            assert measured.startswith("compiled, not correct: as recorded")
    assert [line for line in lines if line.startswith("- ")] == [
        "- Rule seen often.",
        "- Rule seen thrice.",
    ]
    assert ("Changes to make" in prompt.messages[-1].text) == bool(guidance)
    said = [line for line in lines if re.search(r"\d", line)]
    headings = [f"## Kernel {i}" for i in range(1, len(kernels) + 1)]
    assert said == [*headings, *([guidance] if guidance else [])]


@pytest.mark.parametrize(
    ("preset", "changed", "published", "count"),
    [
        pytest.param("adaexplore", {}, partial(Published, **LEVEL_2), STEPS, id="level-2"),
        pytest.param(
            "adaexplore", {"policy": "irle"}, partial(Baseline, "irle"), FEW, id="irle-first"
        ),
        *(
            pytest.param(*case, STEPS, id=name, marks=pytest.mark.slow)
            for name, case in {
                "level-3": ("adaexplore-l3", {}, partial(Published, **LEVEL_3)),
                "adapt": ("adaexplore-adapt", {}, partial(Published, **ADAPT)),
                "many-large": (
                    "adaexplore",
                    {"p_large": 0.75, "alpha": 1.0},
                    partial(Published, **MANY_LARGE),
                ),
                **{
                    policy: ("adaexplore", {"policy": policy}, partial(Baseline, policy))
                    for policy in ("ps", "irs", "irl", "irb", "irle")
                },
            }.items()
        ),
    ],
)
def test_every_step_is_the_published_one(tmp_path, preset, changed, published, count):
    settings = Config(preset=preset, seed=SEED, **{**changed, "memory_threshold": THRESHOLD})
    record = RunRecord(
        problem=Problem("example", REFERENCE, "triton", "cpu"),
        config=settings.model_copy(update={"steps": count}),
        proposers=("model",),
        environment=Environment(),
        command="",
        created_at=0.0,
    )
    reference = published()
    steps, forms, systems, judged, repeats = set(), set(), set(), {}, 0
    with create_run(tmp_path / "run", record) as run:
        proposers = model_proposers(Plan(("model",), rules=RULES), settings)
        ledger = Ledger(run.store, proposers)
        for number in range(1, count + 1):
            parent, kind, pool, window = reference.next(number)
            ask = ledger.ask("model")
            assert (ask.parent_id, ask.step_kind) == (parent, kind), f"step {number}"
            assert (ask.pool, ask.window) == (pool, window), f"step {number}"
            guidance = ""
            turn = ledger.turn(ask.id)[1]
            for at, (label, kernels) in enumerate(reference.prompts(kind, pool, window).items()):
                assert turn.label == label, f"step {number}"
                assert_shows(turn, reference, kernels, guidance)
                reply = answer(turn, number)
                guidance = reply if label == "small.reviser" else ""
                systems.add(turn.messages[0].text)
                turn = ledger.tell(ask.id, at, Reply(reply, "test:model"))
            assert not isinstance(turn, Prompt), f"step {number}"
            source = turn.candidate.source
            current = reference.step(window[-1]).source if window else ""
            assert source.rstrip() == carried_out(reply, current).rstrip(), f"step {number}"
            if source:
                repeats += source in judged
                above = reference.step(parent) if parent else None
                outcome = judged.setdefault(source, landscape(number, above, kind))
            else:
                outcome = ("no module", 0.0)
            reference.steps.append(Recorded(parent, kind, *outcome, source))
            known = ledger.cached(turn)
            verdict = known or evaluation(*outcome)
            ledger.record(ask, turn, verdict, reused=known is not None)
            steps.add((kind, parent == 0, len(pool) > 1, len(window) > 1))
            forms.add(turn.settings["form"])
        assert [node.parent_id for node in ledger.nodes] == [s.parent for s in reference.steps]
    assert repeats >= 5 or "patch" not in forms
    assert reference.sampled or "p_large" not in changed
    assert forms == reference.forms
    assert len(systems) == 1
    assert len(steps) >= reference.sorts
