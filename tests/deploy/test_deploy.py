"""The files of deploy/: they can be read, and the programs take their commands."""

import fnmatch
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from adaexplore.cli.app import app

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVER = (DEPLOY / "server.sh").read_text()
CLUSTER = yaml.safe_load((DEPLOY / "cluster.yaml").read_text())


def lines_of(command) -> list[str]:
    """The commands in a service's command, a string or the words of a shell."""
    return command.splitlines() if isinstance(command, str) else command[-1].splitlines()


COMMANDS = [
    *(line.removesuffix("&") for line in SERVER.splitlines() if not line.startswith("#")),
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
    found = [shlex.split(line) for line in COMMANDS if re.search(rf"(^|\s){program} ", line)]
    return [words[words.index(program) + 1 :] for words in found]


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


def test_everything_starts_again_and_nothing_waits_for_what_is_not_ready():
    services = COMPOSE["services"]
    for service in services.values():
        assert service["restart"] == "unless-stopped"
        for name, wait in service.get("depends_on", {}).items():
            assert wait == {"condition": "service_healthy"}
            assert "healthcheck" in services[name]
    assert services["server"]["depends_on"].keys() == {"database", "ray-head"}


def test_nodes_have_no_rights_of_root():
    assert "\nUSER adaexplore\n" in (DEPLOY / "Containerfile").read_text()
    for name in ("ray-head", "worker", "server"):
        assert COMPOSE["services"][name]["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in COMPOSE["services"][name]["security_opt"]


def test_secrets_are_in_files_that_neither_git_nor_the_image_gets():
    root = DEPLOY.parent
    first, *others = [
        line for line in (root / ".dockerignore").read_text().splitlines() if line[0] != "#"
    ]
    assert first == "*"
    taken = [line.removeprefix("!") for line in others if line.startswith("!")]
    assert all((root / name).exists() for name in taken)
    for secret in COMPOSE["secrets"].values():
        name = (DEPLOY / secret["file"]).resolve().relative_to(root).as_posix()
        assert f"/{name}" in (root / ".gitignore").read_text().splitlines()
        assert not any(fnmatch.fnmatch(name, each) or name.startswith(f"{each}/") for each in taken)
    for service in COMPOSE["services"].values():
        given = {k: v for k, v in service["environment"].items() if re.search("PASS|TOKEN", k)}
        assert all(
            value == "token" or value.startswith("/run/secrets/") for value in given.values()
        )


NODE = """#!/bin/bash
mkdir -p "$RAY_TMPDIR/ray"; touch "$RAY_TMPDIR/ray/ray_current_cluster"
echo $$ > "$RAY_TMPDIR/node"
exec sleep 60
"""
SERVICE = """#!/bin/bash
trap 'echo "$PGPASSWORD" > "$RAY_TMPDIR/ended"; exit 0' TERM
echo $$ > "$RAY_TMPDIR/service"
for _ in {1..600}; do sleep 0.1; done
"""


@pytest.fixture
def server(tmp_path):
    """server.sh, with a node and a service that only wait, in a folder with their process ids."""
    (tmp_path / "password").write_text("secret\n")
    script = SERVER.replace("/run/secrets/database-password", str(tmp_path / "password"))
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").touch()  # of an earlier start
    for name, text in (("ray", NODE), ("adaexplore", SERVICE), ("server.sh", script)):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    with subprocess.Popen(
        [tmp_path / "bin" / "server.sh"],
        env={"PATH": path, "RAY_TMPDIR": str(tmp_path)},
        start_new_session=True,
    ) as process:
        yield process
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def pid_in(file: Path, eventually) -> int:
    assert eventually(lambda: file.exists() and file.read_text())
    return int(file.read_text())


@pytest.mark.parametrize("end", ["node", "service", "server.sh"])
def test_the_server_ends_with_its_node_and_the_service_ends_in_order(
    server, tmp_path, eventually, end
):
    pids = {name: pid_in(tmp_path / name, eventually) for name in ("node", "service")}
    os.kill(pids.get(end, server.pid), signal.SIGTERM)
    server.wait(timeout=20)
    assert (tmp_path / "ended").read_text() == "secret\n"
    assert (server.returncode != 0) == (end != "service")


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
