"""A recorded run whose steps are all that the forms of training data tell apart."""

from dataclasses import replace

from adaexplore.core.ask import Ask, Exchange
from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import Message, Prompt, Reply
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed, Paired, Passed, Timing
from adaexplore.store import Confirmation, RunRecord, create_run

SOURCE = """# SPDX-License-Identifier: MIT
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x).cumsum(0) * torch.sigmoid(x).amax(1, keepdim=True)


def get_inputs():
    return [torch.randn(8, 8)]
"""
BENCHMARK = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(8, 8)]
"""


def passed(speedup, *labels, spread=0.02, parent=None):
    ci = (speedup * (1 - spread), speedup * (1 + spread))
    timing = Timing(
        100 / speedup, (1, 1), {"eager": 100.0}, speedup, ci, 2 * speedup, 9, parent=parent
    )
    return Passed("fp32", 1e-7, timing, labels=labels)


def paired(speedup, low):
    return Paired(1.0, speedup, (low, 2 * speedup))


# step: parent, evaluation
STEPS = {
    1: (0, Failed("compile_error", "no such name")),
    2: (0, passed(1.5)),
    3: (2, passed(3.0)),
    4: (2, Failed("wrong_output", "off by one")),
    5: (2, passed(2.98)),  # its interval meets that of step 3
    6: (2, Failed("infra_error", "a lost worker")),
    7: (3, passed(2.9, parent=paired(1.1, 1.05))),  # slower alone, faster side by side
    8: (3, passed(3.1, parent=paired(1.03, 0.99))),  # within the noise
    9: (3, passed(9.0, "no-custom-kernel")),
    10: (1, passed(0.8)),
    11: (2, passed(1.52)),  # faster than its parent, within the noise
}
BEST = 8


def write_run(path, source=SOURCE, name="tanh_scan", device="cpu", steps=STEPS, confirmed=()):
    """Record the steps; step 3 answers an ask of a model, whose exchange is recorded."""
    problem = Problem(name, source, "cpp", device)
    record = RunRecord(problem, Config(), ("model",), Environment(), "command", 1.5e9)
    with create_run(path, record) as directory:
        store = directory.store
        for node_id, (parent, evaluation) in steps.items():
            code = f"class ModelNew: number = {node_id}\n"
            proposal = Proposal(Candidate(code, "cpp"), "manual", f"idea {node_id}")
            ask_id = None
            if node_id == 3:
                store.open_ask(Ask(1, parent, "small", 0, (), (), 2, "model", 1.5e9))
                sent = Prompt((Message("system", "rules"), Message("user", "quoted")), "small")
                reply = Reply("a patch", "some:model")
                store.add_call(Exchange(1, sent, reply, 1.5e9))
                proposal = replace(proposal, origin="model", prompt="quoted", reply="a patch")
                ask_id = 1
                store.queue(1, proposal)
            kind = "small" if parent else "large"
            store.record(Node(node_id, parent, kind, proposal, evaluation, 1.6e9, ask_id=ask_id))
        for node_id, evaluation in confirmed:
            store.confirm(Confirmation(node_id, evaluation, 1.7e9))
    return path
