"""The nouns, and every Protocol that a user may implement.

- `evaluator.Evaluator`: judges candidates of a problem.
- `proposer.Proposer`: writes candidates.
- `client.ModelClient`: answers prompts, as any callable does from a `Prompt` to a text or `Reply`.
- `policy.Policy`: chooses where the search tree grows next.
- `store.Store`: keeps a run.
- `listener.Listener`: receives the events of a search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaexplore.core.lazy import lazy_names

if TYPE_CHECKING:
    from adaexplore.core.ask import MANUAL as MANUAL
    from adaexplore.core.ask import Ask as Ask
    from adaexplore.core.ask import Exchange as Exchange
    from adaexplore.core.candidate import Candidate as Candidate
    from adaexplore.core.environment import Environment as Environment
    from adaexplore.core.errors import AdaExploreError as AdaExploreError
    from adaexplore.core.errors import BadInputError as BadInputError
    from adaexplore.core.errors import BadProblemError as BadProblemError
    from adaexplore.core.errors import InfrastructureError as InfrastructureError
    from adaexplore.core.files import write_whole as write_whole
    from adaexplore.core.node import ROOT_ID as ROOT_ID
    from adaexplore.core.node import START as START
    from adaexplore.core.node import Node as Node
    from adaexplore.core.node import StepKind as StepKind
    from adaexplore.core.node import best_correct as best_correct
    from adaexplore.core.problem import PRECISIONS as PRECISIONS
    from adaexplore.core.problem import Language as Language
    from adaexplore.core.problem import Problem as Problem
    from adaexplore.core.problem import TargetName as TargetName
    from adaexplore.core.proposal import Proposal as Proposal
    from adaexplore.core.protocols.benchmark import BenchmarkTask as BenchmarkTask
    from adaexplore.core.protocols.client import BudgetSpentError as BudgetSpentError
    from adaexplore.core.protocols.client import Message as Message
    from adaexplore.core.protocols.client import ModelClient as ModelClient
    from adaexplore.core.protocols.client import Prompt as Prompt
    from adaexplore.core.protocols.client import Reply as Reply
    from adaexplore.core.protocols.evaluator import Evaluator as Evaluator
    from adaexplore.core.protocols.listener import Event as Event
    from adaexplore.core.protocols.listener import Listener as Listener
    from adaexplore.core.protocols.listener import follow as follow
    from adaexplore.core.protocols.policy import Cell as Cell
    from adaexplore.core.protocols.policy import Policy as Policy
    from adaexplore.core.protocols.policy import Selection as Selection
    from adaexplore.core.protocols.policy import Vector as Vector
    from adaexplore.core.protocols.proposer import Context as Context
    from adaexplore.core.protocols.proposer import Dialogue as Dialogue
    from adaexplore.core.protocols.proposer import Proposer as Proposer
    from adaexplore.core.protocols.store import RunRecord as RunRecord
    from adaexplore.core.protocols.store import Store as Store
    from adaexplore.core.rule import KINDS as KINDS
    from adaexplore.core.rule import Gain as Gain
    from adaexplore.core.rule import Kind as Kind
    from adaexplore.core.rule import Matcher as Matcher
    from adaexplore.core.rule import Platform as Platform
    from adaexplore.core.rule import Rule as Rule
    from adaexplore.core.rule import Signature as Signature
    from adaexplore.core.settings.config import CAMPAIGN_DEFAULTS as CAMPAIGN_DEFAULTS
    from adaexplore.core.settings.config import Allocation as Allocation
    from adaexplore.core.settings.config import Config as Config
    from adaexplore.core.settings.configure import changes as changes
    from adaexplore.core.settings.configure import group_of as group_of
    from adaexplore.core.settings.configure import make_config as make_config
    from adaexplore.core.settings.configure import parse_pairs as parse_pairs
    from adaexplore.core.settings.configure import parse_settings as parse_settings
    from adaexplore.core.settings.policies import PolicyName as PolicyName
    from adaexplore.core.text.similarity import first_difference as first_difference
    from adaexplore.core.text.units import estimated_tokens as estimated_tokens
    from adaexplore.core.tree import Tree as Tree
    from adaexplore.core.verdict.evaluation import Cost as Cost
    from adaexplore.core.verdict.evaluation import Estimate as Estimate
    from adaexplore.core.verdict.evaluation import Evaluation as Evaluation
    from adaexplore.core.verdict.evaluation import Failed as Failed
    from adaexplore.core.verdict.evaluation import FailureStatus as FailureStatus
    from adaexplore.core.verdict.evaluation import Passed as Passed
    from adaexplore.core.verdict.evaluation import Status as Status
    from adaexplore.core.verdict.evaluation import Timing as Timing
    from adaexplore.core.verdict.evaluation import rank as rank
    from adaexplore.core.verdict.evaluation_json import evaluation_to_json as evaluation_to_json
    from adaexplore.core.verdict.facts import ReferenceFacts as ReferenceFacts
    from adaexplore.core.verdict.labels import set_apart as set_apart
else:
    __all__, __getattr__ = lazy_names(__name__, __file__)
