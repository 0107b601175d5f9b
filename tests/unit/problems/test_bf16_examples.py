"""The modules of `examples/bf16`, at sizes at which a CPU runs them."""

import re
from pathlib import Path

import pytest
import torch

FOLDER = Path(__file__).parents[3] / "examples" / "bf16"
FILES = sorted(FOLDER.glob("*.py"))
SMALL = {
    **{"TOKENS": 32, "WIDTH": 64, "HIDDEN": 128, "PREFILL": 16, "DECODED": 4, "OUTPUTS": 48},
    **{"BATCH": 2, "CACHED": 32, "VOCABULARY": 100, "STEPS": 64, "CHUNK": 16, "STATES": 8},
    **{"HEADS": 4, "KEY_HEADS": 2, "SIZE": 16, "CHANNELS": 16, "SIDE": 8},
}


def small(file):
    """The names of a file whose sizes are small."""

    def shrink(line):
        names, sizes = line[1].split(", "), line[2].split(", ")
        pairs = zip(names, sizes, strict=True)
        return f"{line[1]} = {', '.join(str(SMALL.get(name, size)) for name, size in pairs)}"

    found = {}
    exec(re.sub(r"(?m)^([A-Z_, ]+) = ([\d, ]+)$", shrink, file.read_text()), found)
    torch.manual_seed(0)
    return found


def built(names):
    return names["Model"](*names.get("get_init_inputs", list)())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_runs_in_bf16_and_returns_numbers(file):
    names = small(file)
    model = built(names)
    groups = names["get_input_groups"]() if "get_input_groups" in names else [names["get_inputs"]()]
    assert any(t.dtype is torch.bfloat16 for t in groups[0])
    for inputs in groups:
        outputs = model(*inputs)
        for out in outputs if isinstance(outputs, tuple) else (outputs,):
            assert out.isfinite().all()
            assert out.float().std() > 0 or out.numel() == 1


def test_the_scan_in_chunks_is_the_recurrence():
    names = small(FOLDER / "mamba2_scan.py")
    model, (x, dt, b, c) = built(names), names["get_inputs"]()
    state, expected = torch.zeros(*x[:, 0].shape, b.shape[-1], dtype=torch.float64), []
    for i in range(x.shape[1]):
        step = dt[:, i].double()
        kept = (-model.log_rate.double().exp() * step).exp()
        new = torch.einsum("bhp,bh,bn->bhpn", x[:, i].double(), step, b[:, i].double())
        state = state * kept[..., None, None] + new
        expected.append(torch.einsum("bhpn,bn->bhp", state, c[:, i].double()))
    truth = torch.stack(expected, 1)
    assert (model(x, dt, b, c).double() - truth).norm() < 4e-3 * truth.norm()
