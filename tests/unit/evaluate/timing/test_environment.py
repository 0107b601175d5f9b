from importlib.metadata import distributions

import pytest
import torch

from adaexplore.core.environment import Environment
from adaexplore.sandbox.jobs import run_job

DESCRIBE = "adaexplore.evaluate.timing.environment:describe"


@pytest.fixture(scope="module")
def facts(server):
    found = run_job(server, DESCRIBE, {"device": "cpu"}, 60.0)
    assert found["unusable"] == ""
    return Environment.from_json(found["environment"])


def test_a_cpu_is_described(facts):
    assert facts.device == "cpu"
    assert facts.cpu
    assert facts.cores >= 1
    assert facts.threads >= 1


def test_versions_are_those_that_run(facts):
    assert facts.torch == torch.__version__
    assert facts.python.count(".") == 2
    installed = [d.version for d in distributions() if d.name.lower().startswith("triton")]
    assert facts.triton in (installed or [""])


def test_the_commit_is_that_of_the_checkout_if_there_is_one(facts):
    assert len(facts.commit) in (0, 40)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a usable GPU")
def test_a_gpu_that_torch_cannot_use_is_told_in_one_line(server):
    facts = run_job(server, DESCRIBE, {"device": "cuda:0"}, 60.0)
    assert facts["unusable"].startswith(f"--device cuda:0: torch {torch.__version__} ")
    assert facts["unusable"].endswith("or use --device cpu")
    assert "\n" not in facts["unusable"]
