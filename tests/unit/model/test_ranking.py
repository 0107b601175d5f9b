"""Groups of modules that are alike, their times, and their ranking as problems."""

import fcntl
from types import SimpleNamespace

import pytest
import torch
from small_models import Cnn, Decoder, Encoder
from torch import nn

from adaexplore.model import rank as rank_module
from adaexplore.model.calls import calls_of
from adaexplore.model.rank import CaptureOptions, rank_model
from adaexplore.sandbox.lock import lock_file


@pytest.fixture
def one_thread():
    """Small operations wait for each other's threads where other tests use the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def holder_of(device):
    """Tell who holds the device: a thread that times, several at work, or nobody."""
    with lock_file(device).open() as lock:
        for kind, held in ((fcntl.LOCK_SH, "one alone"), (fcntl.LOCK_EX, "several")):
            try:
                fcntl.flock(lock, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                return held
    return "nobody"


@pytest.fixture(autouse=True)
def device_is_held(monkeypatch):
    """Whoever works on the device holds it, and whoever measures it holds it alone."""
    found = {}

    def watched(name, does):
        def watching(*given, **named):
            found.setdefault(name, set()).add(holder_of("cpu"))
            return does(*given, **named)

        return watching

    for name in ("look", "capture", "work_of", "measure_peaks"):
        monkeypatch.setattr(rank_module, name, watched(name, getattr(rank_module, name)))
    yield
    assert found.pop("measure_peaks") == {"one alone"}
    assert found == {name: {"several"} for name in ("look", "capture", "work_of")}


@pytest.fixture
def rank(tmp_path, one_thread):
    def ranked(model, inputs):
        torch.manual_seed(0)
        return rank_model(model.eval(), calls_of(inputs), CaptureOptions(tmp_path))

    return ranked


def by_path(ranking):
    return {path: group for group in ranking.groups for path in group.paths}


def test_equal_layers_of_a_decoder_are_one_problem_with_a_workload_for_each_shape(rank):
    model = Decoder()
    ranked = rank(model, model.calls())
    groups = by_path(ranked.ranking)
    _, _, name, *_ = groups["layers.0.mlp"].reason.replace(",", "").split()  # overlaps with ...
    group = ranked.problems[name].group
    assert group.kind.startswith("Layer.")
    assert [path.rpartition(".")[0] for path in group.paths] == ["layers.0", "layers.1"]
    assert group.calls == 4
    shapes = [workload.name for workload in ranked.problems[name].captured.problem.workloads]
    assert len(shapes) == 2
    assert all("2x12x32" in shape or "2x1x32" in shape for shape in shapes)
    assert [call.name for call in ranked.ranking.calls] == ["prefill", "decode"]
    assert "writes to a tensor" in groups["layers.0"].reason  # its cache


def test_chosen_groups_do_not_overlap_and_come_first_with_the_most_saved(rank):
    ranking = rank(Encoder(), [{"x": torch.rand(2, 6, 32)}]).ranking
    chosen = ranking.chosen
    assert ranking.groups[: len(chosen)] == chosen
    assert [group.kind for group in chosen] == ["Block"]
    assert chosen[0].paths == ("blocks.0", "blocks.1", "blocks.2")
    assert "overlaps with Block" in by_path(ranking)["blocks.0.inner"].reason
    assert 0 < chosen[0].saves <= chosen[0].share <= 1
    assert 1 < chosen[0].most <= 1 / (1 - chosen[0].share)


def test_own_time_leaves_out_inner_modules(rank):
    ranking = rank(Encoder(), [(torch.rand(8, 64, 32),)]).ranking
    groups = by_path(ranking)
    inner = sum(groups[f"blocks.0.{name}"].share for name in ("norm", "inner", "outer"))
    assert groups["blocks.0"].share == pytest.approx(groups["blocks.0"].own_share + inner, rel=0.3)
    assert groups["blocks.0.inner"].own_share == groups["blocks.0.inner"].share


def test_a_roofline_above_the_measured_time_is_no_bound(rank, monkeypatch):
    disproved = SimpleNamespace(floor_us=1e9, bound_by="memory")
    monkeypatch.setattr(rank_module, "RooflineModel", lambda *_: disproved)
    [group] = rank(Encoder(), [(torch.rand(2, 6, 32),)]).ranking.chosen
    assert group.saves == pytest.approx(group.share)


def test_each_kind_of_calls_is_a_problem_with_all_shapes_that_occurred(rank):
    mask = torch.ones(2, 6)
    calls = {
        "plain": (torch.rand(2, 6, 32),),
        "short": (torch.rand(2, 1, 32),),
        "masked": {"x": torch.rand(2, 6, 32), "mask": mask},
    }
    ranked = rank(Encoder(), calls)
    problems = [ranked.problems[name] for name in ("Block", "Block-2")]
    counts = [len(one.captured.problem.workloads) for one in problems]
    assert sorted(counts) == [1, 2]
    assert problems[0].group.paths == problems[1].group.paths
    assert not problems[0].group.forms.keys() & problems[1].group.forms.keys()
    rows = [row for row in ranked.ranking.chosen if row.kind == "Block"]
    assert sorted(row.forms for row in rows) == [(0, 1), (2,)]
    assert sum(row.share for row in rows) <= 1


STEPPING = """
class Stepping(nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        return y if x.shape[1] == 1 else y.sin()
"""  # another graph for a single token, and no file with its source


def test_shapes_with_other_graphs_are_problems_of_their_own(rank):
    names = {"nn": nn, "__name__": __name__}
    exec(STEPPING, names)
    model = nn.Sequential(names["Stepping"](32, 32), names["Stepping"](32, 32))
    ranked = rank(model, [(torch.rand(2, 6, 32),), (torch.rand(2, 1, 32),)])
    workloads = [
        [workload.name for workload in one.captured.problem.workloads]
        for one in ranked.problems.values()
        if one.group.kind == "Stepping"
    ]
    assert sorted(workloads) == [["2x1x32"], ["2x6x32"]]


class Turned(nn.Module):
    """Layers, of which the first gets its input in another memory layout than all others."""

    def __init__(self):
        super().__init__()
        layers = (nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)) for _ in range(3))
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        x = x.transpose(1, 2).contiguous().transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return x


def test_a_group_is_captured_with_the_memory_layout_of_most_of_its_modules(rank):
    ranked = rank(Turned(), [(torch.rand(2, 6, 32),)])
    [workload] = ranked.problems["Sequential"].captured.problem.workloads
    assert torch.load(workload.file)["args"][0].stride() == (192, 32, 1)


def test_a_cnn_of_stages(rank):
    ranked = rank(Cnn(), [(torch.rand(2, 3, 8, 8),), (torch.rand(4, 3, 8, 8),)])
    covers = [one.group.covers for one in ranked.problems.values()]
    covered = {path for each in covers for parts in each.values() for path in parts}
    assert {"stem", "stage"} <= covered  # alone, or in a run with what follows
    assert {len(one.captured.problem.workloads) for one in ranked.problems.values()} == {2}
