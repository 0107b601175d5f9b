"""Trouble while a candidate runs without its own kernels says nothing of what is known already."""

from types import SimpleNamespace

import pytest
import torch

from adaexplore.core.verdict.evaluation import Failed
from adaexplore.evaluate.judge.conversation import Stop
from adaexplore.evaluate.judge.diagnosis import profile
from adaexplore.evaluate.judge.diagnosis.profile import Diagnosis, with_decoys_labelled

KERNEL = SimpleNamespace(origin="custom")
FOUND = Diagnosis(SimpleNamespace(kernels=[KERNEL], custom_share=1.0), ("library:cublas",))
TALK = SimpleNamespace(stage="running without its own kernels")
REFERENCE = SimpleNamespace(timed=["the workload"])


@pytest.fixture
def labelled(monkeypatch):
    def labelled(tried):
        monkeypatch.setattr(profile, "is_decoy", lambda *_: tried())
        return with_decoys_labelled(TALK, REFERENCE, FOUND)

    return labelled


def raising(error):
    def tried():
        raise error

    return tried


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (Stop(Failed("runtime_error", "it fails")), "it fails"),
        (TimeoutError(), "TimeoutError, while running without its own kernels"),
        (torch.OutOfMemoryError("CUDA out of memory"), "the judge had too little memory while"),
    ],
)
def test_it_is_a_note_and_own_kernels_are_not_seen(labelled, trouble, told):
    found = labelled(raising(trouble))
    assert (found.profile, found.labels) == (FOUND.profile, FOUND.labels)
    assert found.note.startswith(told)
    assert found.objection() == f"its own kernels could not be seen: {found.note}"


def test_other_trouble_is_not_hidden(labelled):
    with pytest.raises(RuntimeError, match="shapes"):
        labelled(raising(RuntimeError("shapes do not match")))


def test_a_decoy_has_its_label_beside_the_others(labelled):
    assert labelled(lambda: True).labels == ("decoy", "library:cublas")
    assert labelled(lambda: False) == FOUND
