import subprocess
import sys
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.problems.kernelbench import load
from adaexplore_lab.synthesize.draft import Draft, Value
from adaexplore_lab.synthesize.grammar import grow
from adaexplore_lab.synthesize.productions.base import CATALOGUE, production, step
from adaexplore_lab.synthesize.sizes import Dim, UnfitError

SEEDS = st.integers(0, 2**40)
MANY = [grow(seed) for seed in range(600)]


def run(source):
    """The module's inputs and outputs."""
    scope = {}
    exec(compile(source, "task", "exec"), scope)
    model = scope["Model"](*scope["get_init_inputs"]())
    inputs = scope["get_inputs"]()
    with torch.no_grad():
        outputs = model(*inputs)
    return inputs, outputs if isinstance(outputs, tuple) else (outputs,)


@settings(deadline=None, max_examples=60)
@given(SEEDS)
def test_what_the_grammar_infers_is_what_torch_computes(seed):
    task = grow(seed)
    inputs, outputs = run(task.source)
    found = tuple((tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in outputs)
    assert found == task.outputs
    assert all(t.numel() <= 2**19 for t in (*inputs, *outputs))


@settings(deadline=None, max_examples=25)
@given(SEEDS)
def test_every_task_is_a_problem_in_kernelbench_form(tmp_path_factory, seed):
    task = grow(seed)
    path = tmp_path_factory.mktemp("task") / f"{task.name}.py"
    path.write_text(task.source)
    problem = load(path, device="cpu", language="triton")
    assert problem == task.problem(language="triton", device="cpu")


@given(SEEDS)
def test_a_seed_always_gives_the_same_task(seed):
    assert grow(seed) == grow(seed)


def test_a_seed_gives_the_same_task_in_every_process():
    code = "from adaexplore_lab.synthesize.grammar import grow; print(grow(7).source, end='')"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True).stdout == grow(7).source


def test_growing_needs_no_torch():
    code = (
        "import sys, adaexplore_lab.synthesize.grammar as g; g.grow(1); "
        "print('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "False\n"


def test_tasks_are_of_all_kinds():
    sources = "\n".join(task.source for task in MANY)
    for text in (
        *("nn.Conv1d", "nn.Conv2d", "nn.Conv3d", "nn.ConvTranspose2d", "nn.Linear", "torch.bmm"),
        *("torch.einsum", "nn.LayerNorm", "nn.BatchNorm", "nn.GroupNorm", "softmax", "logsumexp"),
        *("cumsum", "cumprod", "cummax", "gather", "index_add", "scatter", "nn.Embedding"),
        *("max_pool", "avg_pool", "cross_entropy", "scaled_dot_product_attention", "torch.cat"),
        *(".expand(", ".transpose(", "::2]", "channels_last", "torch.float16", "torch.bfloat16"),
        *("torch.randint", "< 0.5", "return x, "),
    ):
        assert text in sources, text


def test_every_family_is_used():
    used = Counter(op for task in MANY for op in task.ops)
    assert len(used) > 150
    assert set(range(1, 10)) <= {task.difficulty for task in MANY}


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(p, id=f"{family}-{p.name}-{i}")
        for family, productions in CATALOGUE.items()
        for i, p in enumerate(productions)
    ],
)
def test_every_production_fits_something(chosen):
    for seed in range(4000):
        draft = _begun(seed)
        x = draft.kept[-1]
        try:
            grown = chosen.grow(draft, x)
        except UnfitError:
            continue
        assert draft.statements
        assert grown.rank <= 5
        return
    pytest.fail(f"{chosen.name} fits nothing")


def _begun(seed):
    """A draft with a value of some shape and another that it may be joined with."""
    import random

    rng = random.Random(seed)
    draft = Draft(rng)
    shape = tuple(draft.size(f"n{i}", rng.randint(2, 12)) for i in range(rng.randint(1, 5)))
    if rng.random() < 0.2:
        shape = (*shape[:-1], shape[-2]) if len(shape) > 1 else shape
    dtype = rng.choice(("float32", "float32", "bfloat16"))
    x = draft.input("x", shape, dtype=dtype)
    if dtype != "float32":
        draft.dtype = rng.choice(("float32", dtype))
    draft.keep(x, "skip")
    y = draft.let("x", "-x", x.shape, x.dtype)
    draft.kept.append(y)
    return draft


def test_what_does_not_fit_leaves_no_trace(monkeypatch):
    monkeypatch.setitem(CATALOGUE, "clumsy", [])

    @production("clumsy")
    def spoils(draft, x):
        draft.input("y", x.shape)
        draft.size("n", 3)
        draft.let("x", "x + y", x.shape, x.dtype, "add")
        raise UnfitError("after all")

    import random

    draft = Draft(random.Random(0))
    x = draft.input("x", (Dim.of(4),))
    before = draft.snapshot()
    with pytest.raises(UnfitError):
        step(draft, x, ["clumsy"])
    assert draft.snapshot() == before


def test_a_weight_is_only_given_to_values_of_its_dtype():
    import random

    draft = Draft(random.Random(0), dtype="bfloat16")
    with pytest.raises(UnfitError):
        step(draft, Value("x", (Dim.of(4), Dim.of(8)), "float32"), ["linear"])
