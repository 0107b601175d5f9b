"""Models of the Hugging Face hub, found where a user's tools keep them."""

import pytest

from adaexplore.sandbox.hub import has_model, hub_cache
from adaexplore.sandbox.walls.limits import clean_environment

VARIABLES = ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME")


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("variable", "value", "place"),
    [
        ("", "", ".cache/huggingface/hub"),
        ("XDG_CACHE_HOME", "caches", "caches/huggingface/hub"),
        ("HF_HOME", "hf", "hf/hub"),
        ("HF_HUB_CACHE", "models", "models"),
    ],
)
def test_a_worker_finds_the_models_and_no_key(home, monkeypatch, variable, value, place):
    monkeypatch.setenv("HF_TOKEN", "secret")
    if variable:
        monkeypatch.setenv(variable, str(home / value))
    assert hub_cache() is None
    assert "HF_HUB_CACHE" not in clean_environment("/somewhere")
    (home / place).mkdir(parents=True)
    environment = clean_environment("/somewhere")
    assert environment["HF_HUB_CACHE"] == str(hub_cache()) == str(home / place)
    assert environment["HF_HUB_OFFLINE"] == "1"
    assert "HF_TOKEN" not in environment


def test_a_model_is_there_once_it_has_files(home):
    folder = home / ".cache/huggingface/hub/models--me--tiny/snapshots/abc"
    folder.mkdir(parents=True)
    assert not has_model("me/tiny")
    (folder / "config.json").touch()
    assert has_model("me/tiny")
    assert not has_model("me/tin")
