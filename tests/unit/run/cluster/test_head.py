"""The head of a Ray cluster is killed under a search, which then goes on elsewhere."""

import os
import shutil
import subprocess
import sys
from contextlib import closing, suppress
from importlib.util import find_spec

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.store import read_run
from elementwise import reference
from ray_cluster import RayCluster

SHORT = """
from adaexplore.cli import main
from adaexplore.run.cluster import fleet
fleet._SILENCE_S = 6.0
main()
"""
NODE_ENDS_S = 90.0


def adaexplore(*words, cluster=None) -> subprocess.Popen:
    """Start the command, as a node of a cluster that loses patience with its head sooner."""
    return subprocess.Popen(
        [sys.executable, "-c", SHORT, *map(str, words)],
        env=os.environ | (cluster.environment if cluster else {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def nodes_of(path) -> list:
    """The recorded steps; none while the run is being made."""
    with suppress(BadInputError), read_run(path) as directory:
        return directory.store.nodes()
    return []


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """A run whose cluster lost its head, the steps before that, and what the command said."""
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed (pip install 'adaexplore[ray]')")
    folder = tmp_path_factory.mktemp("head")
    (folder / "relu.py").write_text(reference("torch.relu(x) + 1"))
    words = ["--run", folder / "run", "--device", "cpu", "--language", "cpp", "--steps", 10_000]
    words += ["--set", "confirm=false"]
    with closing(RayCluster()) as cluster:
        cluster.add()
        process = adaexplore(
            "explore", folder / "relu.py", "--ray", cluster.address, *words, cluster=cluster
        )
        while len(nodes_of(folder / "run")) < 2:
            assert process.poll() is None, process.communicate()
        before = nodes_of(folder / "run")
        cluster.kill_head()
        out, err = process.communicate(timeout=NODE_ENDS_S)
    return folder / "run", cluster.address, before, process.returncode, out, err


@pytest.mark.slow
def test_a_search_whose_head_is_killed_ends_in_one_line_that_says_how_to_go_on(left):
    run, address, before, code, out, err = left
    assert code == 3
    assert err == (
        f"adaexplore: the head of the Ray cluster at {address} is gone; name another cluster with "
        "--ray ADDRESS, or judge on this machine with --ray ''\n"
    )
    assert f"nothing recorded is lost. Go on with:\n  adaexplore resume {run}\n" in out
    assert nodes_of(run)[: len(before)] == before


@pytest.mark.slow
@pytest.mark.parametrize("where", ["a new cluster", "this machine"])
def test_resume_finishes_it_elsewhere(left, tmp_path, where):
    run, made = tmp_path / "run", nodes_of(left[0])
    shutil.copytree(left[0], run)
    words = ["resume", run, "--steps", len(made) + 2, "--ray"]
    if where == "this machine":
        process = adaexplore(*words, "")
        _, err = process.communicate()
    else:
        with closing(RayCluster()) as cluster:
            cluster.add()
            process = adaexplore(*words, cluster.address, cluster=cluster)
            _, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    after = nodes_of(run)
    assert after[: len(made)] == made
    assert len(after) >= len(made) + 2
