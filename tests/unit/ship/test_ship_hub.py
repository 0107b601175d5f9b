"""The layout of Hugging Face's `kernels`, loaded as their library loads it."""

import base64
import hashlib
import importlib.util
import json
import sys

import pytest
import torch

from adaexplore.core.errors import BadInputError
from adaexplore.ship.hub import refuse_compiled


@pytest.fixture
def metadata(hub):
    return json.loads((hub / "build/torch-cpu/metadata.json").read_text())


def test_the_metadata_name_every_file(hub, metadata):
    build = hub / "build/torch-cpu"
    files = {
        str(file.relative_to(build)): base64.b64encode(
            hashlib.sha256(file.read_bytes()).digest()
        ).decode()
        for file in build.rglob("*")
        if file.is_file() and file.name != "metadata.json"
    }
    assert metadata["digest"] == {"algorithm": "sha256", "files": files}
    assert metadata["name"] == "block-kernel"
    assert metadata["backend"] == {"type": "cpu"}
    assert metadata["license"] == "other"
    readme = (hub / "README.md").read_text()
    assert readme.startswith("---\nlibrary_name: kernels\nlicense: other\n---\n")
    assert 'get_kernel("OWNER/block-kernel", version=1)' in readme


def test_it_is_loaded_under_another_name_beside_the_package(
    hub, metadata, kernel, net, x, monkeypatch
):
    name = metadata["id"]
    spec = importlib.util.spec_from_file_location(name, hub / "build/torch-cpu/__init__.py")
    loaded = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, loaded)
    spec.loader.exec_module(loaded)
    assert loaded.apply is not kernel.apply
    with torch.no_grad():
        expected = net(x)
        assert loaded.apply(net).modules == ("blocks.0", "blocks.1")
        torch.testing.assert_close(net(x), expected, rtol=1e-4, atol=1e-5)
    assert loaded.refusals() == {}


def test_a_kernel_that_is_compiled_at_its_first_use_is_refused():
    with pytest.raises(BadInputError, match="--hub: the winner is compiled where it is used"):
        refuse_compiled("from torch.utils.cpp_extension import load_inline")
