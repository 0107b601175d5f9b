"""The processes that a search starts."""

import importlib.util
import sys

from adaexplore.run import processes


def test_builds_of_torch_without_triton_are_served(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    spec = importlib.util.spec_from_file_location("processes_without_triton", processes.__file__)
    without = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, without)
    spec.loader.exec_module(without)
    assert "torch" in without.PRELOAD
    assert not any("triton" in name for name in without.PRELOAD)
