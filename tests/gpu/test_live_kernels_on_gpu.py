"""A decoder with a static cache on a GPU: its layers with a kernel, timed in every way."""

import inspect

import pytest
import torch

from adaexplore.model.calls import calls_of
from adaexplore.model.placements import Placements
from adaexplore.model.rank import CaptureOptions, rank_model
from adaexplore.model.unseen import Original
from adaexplore.model.ways import Stopwatch
from adaexplore.package.describe import describe_kernel
from adaexplore.package.imported import import_kernel

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]
DEVICE = "cuda:0"
ROOM = 8  # less than the replays of a graph


@pytest.fixture(scope="module")
def decoder():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.Qwen3Config(
        vocab_size=256,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        eos_token_id=None,
    )
    model = transformers.Qwen3ForCausalLM(config).to(DEVICE, torch.bfloat16).eval()
    cache = transformers.StaticCache(config=config, max_cache_len=32 + ROOM)
    cache.early_initialization(4, 2, 64, torch.bfloat16, torch.device(DEVICE))
    ids = torch.randint(0, 256, (4, 33), device=DEVICE)
    parameters = inspect.signature(model.forward).parameters
    name = "cache" if "cache" in parameters else "past_key_values"  # since transformers 5.24
    with torch.no_grad():
        model(input_ids=ids[:, :32], **{name: cache})
    return model, calls_of({"decode": {"input_ids": ids[:, 32:], name: cache}})


@pytest.fixture(scope="module")
def placements(decoder, tmp_path_factory):
    """The captured code as the kernel of both layers."""
    model, calls = decoder
    folder = tmp_path_factory.mktemp("kernels")
    ranked = rank_model(model, calls, CaptureOptions(folder / "ranked"))
    reasons = [f"{group.name}: {group.reason or 'chosen'}" for group in ranked.ranking.groups]
    assert "Qwen3DecoderLayer" in ranked.problems, "; ".join(reasons)
    found = ranked.problems["Qwen3DecoderLayer"]
    problem = found.captured.problem
    source = problem.source.replace("class Model(", "class ModelNew(")
    placements = Placements(model)
    described = describe_kernel(problem, source, "layer", folder)
    placements.add("layer", import_kernel(described, folder), found.group.paths)
    return placements


@pytest.mark.usefixtures("shared_gpu")
def test_tokens_and_caches_are_the_original_s(decoder, placements):
    model, calls = decoder
    original = Original(model, calls, "half", DEVICE)
    ran = placements.runs
    with placements.only(["layer"]):
        [found] = original.differences(model)
    assert found.is_same, found
    assert found.steps == ROOM
    assert placements.runs > ran
    assert placements.refusals == {}


def test_every_way_runs_and_no_replay_fills_the_cache(decoder, placements):
    model, calls = decoder
    watch = Stopwatch(model, calls, placements, "half", DEVICE)
    before, after = watch.fastest(()), watch.fastest(["layer"])
    assert {"eager", "cuda graph", "compile"} <= set(after.times_us[0])
    _, times = watch.ratio(before, after)
    torch.cuda.synchronize()
    assert times[0] > 0
