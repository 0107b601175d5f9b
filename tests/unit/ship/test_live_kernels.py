"""Kernels in models of this process: pickles that outlive it, and a model of a library."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from shipped_blocks import FOLDED, KEEPS, Block, Net, candidate

from adaexplore.core.errors import BadInputError
from adaexplore.model.placements import Placements
from adaexplore.package.describe import describe_kernel
from adaexplore.package.imported import import_kernel
from adaexplore.problems.live import capture

AGAIN = """
import pickle, sys, torch
with open(sys.argv[1], "rb") as file:
    try:
        model, x, expected = pickle.load(file)
    except Exception as error:
        print(error)
        sys.exit(3)
with torch.no_grad():
    torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-5)
print(type(model.blocks[0].forward).__module__)
"""

MLP = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = nn.Module(), nn.Module(), nn.Module()
        self.gate_proj.weight = nn.Parameter(torch.empty(96, 32))
        self.up_proj.weight = nn.Parameter(torch.empty(96, 32))
        self.down_proj.weight = nn.Parameter(torch.empty(32, 96))

    def forward(self, x):
        both = x @ torch.cat([self.gate_proj.weight, self.up_proj.weight]).t()
        gate, up = both.chunk(2, -1)
        return (torch.sigmoid(gate) * gate * up) @ self.down_proj.weight.t()
"""


def in_another_process(file):
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""), *sys.path]
    return subprocess.run(
        [sys.executable, "-c", AGAIN, str(file)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


def test_a_pickle_finds_the_kernels_in_another_process_or_says_what_is_missing(live, tmp_path, x):
    model = Net().eval()
    live.apply(model)
    file = tmp_path / "model.pkl"
    with torch.no_grad():
        file.write_bytes(pickle.dumps((model, x, model(x))))
    done = in_another_process(file)
    assert done.stdout.strip() == f"{live.__name__}.replace", done.stdout + done.stderr

    home = Path(live.__file__).parent
    away = home.rename(tmp_path / "away")
    try:
        done = in_another_process(file)
    finally:
        away.rename(home)
    assert done.returncode == 3
    [line] = done.stdout.strip().splitlines()
    assert line.startswith(f"{home}: has the kernels of this model no more; call undo()")


def test_the_same_kernel_in_the_same_place_is_one_package_and_elsewhere_another(live, tmp_path):
    captured = capture(Block().eval(), (torch.rand(2, 16),), folder=tmp_path / "captured")
    described = describe_kernel(captured.problem, candidate(), "block_kernel", tmp_path)
    first = import_kernel(described, tmp_path / "one")
    assert import_kernel(described, tmp_path / "one") is first
    other = import_kernel(described, tmp_path / "two")
    assert len({live.SPEC.namespace, first.SPEC.namespace, other.SPEC.namespace}) == 3
    model = Net().eval()
    assert first.apply(model).modules == ("blocks.0", "blocks.1")
    assert other.undo(model) == ()  # not its own
    shutil.rmtree(tmp_path / "one")
    assert import_kernel(described, tmp_path / "one") is first  # its files are there again
    assert first.undo(model) == ("blocks.0", "blocks.1")


def imported(source, folder):
    captured = capture(Block().eval(), (torch.rand(3, 16),), folder=folder / "captured")
    described = describe_kernel(captured.problem, source, "block_kernel", folder)
    return import_kernel(described, folder)


def test_a_kernel_that_keeps_values_from_its_first_call_is_made_anew_at_every_call(tmp_path, x):
    package = imported(candidate(KEEPS), tmp_path)
    assert package.SPEC.fresh
    model = Net().eval()
    package.apply(model)
    with torch.no_grad():
        model(x)
        for weight in model.parameters():
            weight.data.mul_(3)
        found = model(x)
        package.undo(model)
        torch.testing.assert_close(found, model(x), rtol=1e-4, atol=1e-5)


def test_a_kernel_that_keeps_values_from_its_constructor_is_refused(tmp_path):
    with pytest.raises(BadInputError, match="on other inputs or other weights than it was built"):
        imported(candidate(FOLDED), tmp_path)


@pytest.fixture(scope="module")
def decoder():
    """A small decoder of a library."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.Qwen3Config(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        bos_token_id=None,
        eos_token_id=None,
    )
    return transformers.Qwen3ForCausalLM(config).eval()


def test_a_decoder_generates_the_same_tokens(decoder, tmp_path):
    paths = [f"model.layers.{i}.mlp" for i in range(2)]
    calls = [((torch.rand(2, length, 32),), {}) for length in (6, 1)]
    captured = capture(decoder.get_submodule(paths[0]), folder=tmp_path, calls=calls)
    described = describe_kernel(captured.problem, MLP, "mlp", tmp_path)
    placements = Placements(decoder)
    placements.add("mlp", import_kernel(described, tmp_path), paths)
    ids = torch.randint(0, 64, (2, 6))
    ask = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    expected = decoder.generate(ids, **ask)
    ran = placements.runs
    with placements.only(["mlp"]):
        assert torch.equal(decoder.generate(ids, **ask), expected)
    assert placements.runs == ran + 2 * 12
    assert placements.refusals == {}


def test_a_kernel_that_fits_no_module_is_refused(live, tmp_path):
    model = Net(width=8).eval()
    with pytest.raises(BadInputError, match=r"blocks\.0\.norm has other state than verified"):
        Placements(model).add("block", live, ["blocks.0"])
    assert "forward" not in vars(model.blocks[0])
