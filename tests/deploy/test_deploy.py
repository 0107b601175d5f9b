"""The files of deploy/: they can be read, and the programs take their commands."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from adaexplore.cli.app import app

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
CLUSTER = yaml.safe_load((DEPLOY / "cluster.yaml").read_text())


def lines_of(command) -> list[str]:
    """The commands in a service's command, a string or the words of a shell."""
    return command.splitlines() if isinstance(command, str) else command[-1].splitlines()


COMMANDS = [
    *(line for one in COMPOSE["services"].values() for line in lines_of(one.get("command", ""))),
    *CLUSTER["head_start_ray_commands"],
    *CLUSTER["worker_start_ray_commands"],
]
# In a process of its own: an import of Ray settles how this one would log on to a cluster.
RAY = """
import json, sys
from ray.autoscaler._private.util import prepare_config, validate_config
from ray.scripts.scripts import cli

given = json.load(sys.stdin)
for name, *words in given["commands"]:
    cli.commands[name].make_context(name, words)
validate_config(prepare_config(given["cluster"]))
print("taken")
"""


def words_after(program: str) -> list[list[str]]:
    """The words of each command of a program, without what a shell does before it."""
    found = [shlex.split(line) for line in COMMANDS]
    return [words[words.index(program) + 1 :] for words in found if program in words]


@pytest.mark.parametrize("words", words_after("adaexplore"), ids=" ".join)
def test_commands_of_adaexplore_are_taken(words):
    command = get_command(app).commands[words[0]]
    given = command.make_context(words[0], words[1:]).params
    assert given["ray"] == "auto"
    assert given["store"].startswith("postgresql://")


def taken(commands=(), cluster=CLUSTER) -> str:
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    given = json.dumps({"commands": list(commands), "cluster": cluster})
    done = subprocess.run(
        [sys.executable, "-c", RAY], input=given, capture_output=True, text=True, timeout=60
    )
    return done.stdout or done.stderr


def test_ray_takes_its_commands_and_the_cluster_file():
    assert taken(words_after("ray")) == "taken\n"
    assert "No such option" in taken([["start", "--heads"]])
    assert "taken" not in taken(cluster={**CLUSTER, "provider": {}})


def test_all_parts_are_there():
    assert set(COMPOSE["services"]) == {"database", "ray-head", "worker", "server"}
    assert len(words_after("ray")) == 7
    assert len(words_after("adaexplore")) == 1


def test_only_those_with_the_token_are_nodes():
    for name in ("ray-head", "worker", "server"):
        service = COMPOSE["services"][name]
        assert "ray-token" in service["secrets"]
        assert service["environment"]["RAY_AUTH_MODE"] == "token"


@pytest.mark.parametrize("extra", [[], ["-f", "compose.gpu.yaml"]], ids=["cpu", "gpu"])
def test_docker_takes_the_compose_file(extra):
    docker = shutil.which("docker")
    if not docker or subprocess.run([docker, "compose", "version"], capture_output=True).returncode:
        pytest.skip("there is no docker compose")
    words = [docker, "compose", "-f", "compose.yaml", *extra, "config", "--quiet"]
    subprocess.run(words, cwd=DEPLOY, check=True, timeout=60)


def test_the_image_installs_extras_that_exist():
    extras = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]
    [named] = re.findall(r"/source\[(.*)\]", (DEPLOY / "Containerfile").read_text())
    assert set(named.split(",")) <= set(extras["optional-dependencies"])
