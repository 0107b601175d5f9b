"""Objects of the user that take the place of the package's own parts in a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, cast

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.client import Finish, ModelClient, Prompt, Reply
from adaexplore.core.protocols.evaluator import Evaluator
from adaexplore.core.protocols.policy import Policy
from adaexplore.core.protocols.proposer import Proposer
from adaexplore.core.settings.config import Config

PolicyFactory = Callable[[Config], Policy]


@dataclass(frozen=True, slots=True)
class Parts:
    """Objects that replace a part of a run; an empty field leaves the package's own in place.

    `clients` and `proposers` are keyed by the names that the run's plan uses. The caller closes
    the evaluator; with several steps under way, all objects are used by several threads.
    """

    policy: Policy | PolicyFactory | None = None
    evaluator: Evaluator | None = None
    proposers: Mapping[str, Proposer] = field(default_factory=dict)
    clients: Mapping[str, ModelClient] = field(default_factory=dict)

    @property
    def make_policy(self) -> PolicyFactory | None:
        """Make a policy that remembers nothing yet: a search replays its steps into it."""
        given = self.policy
        if given is None:
            return None
        if isinstance(given, type) or not hasattr(given, "select"):
            return cast(PolicyFactory, given)
        policy = cast(Policy, given)
        return lambda _: deepcopy(policy)


class CallableClient:
    """A client that calls a function with the prompt; the function returns a text or a `Reply`."""

    def __init__(self, name: str, function: Callable[[Prompt], str | Reply]) -> None:
        self.model = name
        self._function = function

    def ask(self, prompt: Prompt) -> Reply:
        """Return what the function answers, under this client's name.

        Raises `BadInputError` for an answer that is neither a text nor a `Reply`.
        """
        answer = self._function(prompt)
        if isinstance(answer, Reply):
            return answer
        if not isinstance(answer, str):
            raise BadInputError(
                f"the model {self.model} returned {type(answer).__name__}; "
                "it has to return a text or an adaexplore.Reply"
            )
        finish: Finish = "complete" if answer.strip() else "empty"
        return Reply(answer, self.model, finish)

    def close(self) -> None:
        """Do nothing: the function belongs to the caller."""


def client_of(model: object) -> ModelClient:
    """Return a model object as a client.

    Raises `BadInputError` for an object that is neither a `ModelClient` nor callable.
    """
    if isinstance(getattr(model, "model", None), str) and hasattr(model, "ask"):
        return cast(ModelClient, model)
    if not callable(model):
        raise BadInputError(
            f"model={model!r}: give the name of a model such as 'openai:gpt-5-mini', a function "
            "from a Prompt to a text, or an adaexplore.ModelClient"
        )
    return CallableClient(getattr(model, "__name__", type(model).__name__), model)


def take_objects(options: Mapping[str, Any]) -> tuple[Parts, dict[str, Any]]:
    """Return the objects among the options, and the options that are fields of `Config`.

    Raises `BadInputError` for an object that lacks a method of its Protocol.
    """
    left = dict(options)
    given = left.pop("model", None)
    models = list(given) if isinstance(given, list | tuple) else [given] if given else []
    clients = {c.model: c for c in (client_of(m) for m in models if not isinstance(m, str))}
    named = tuple(m for m in models if isinstance(m, str))
    left |= {"model": named} if named else {}
    own: dict[str, Proposer] = {}
    if not isinstance(left.get("proposer"), str | None):
        proposer = _required(left.pop("proposer"), "proposer", "begin", "close")
        own[type(proposer).__name__.lower()] = proposer
    policy: Policy | PolicyFactory | None = None
    if not isinstance(left.get("policy"), str | None):
        policy = left.pop("policy")
        if not callable(policy):  # else it makes one
            _required(policy, "policy", "select", "record")
    evaluator = left.pop("evaluator", None)
    if evaluator is not None:
        _required(evaluator, "evaluator", "prepare", "evaluate", "close")
    return Parts(policy, evaluator, own, clients), left


def _required(given: Any, name: str, *methods: str) -> Any:
    """Return an object that has these methods."""
    missing = [method for method in methods if not callable(getattr(given, method, None))]
    if missing:
        raise BadInputError(
            f"{name}={given!r}: it has no {missing[0]}(); give an object with "
            f"{' and '.join(f'{method}()' for method in methods)} (docs/architecture.md, Protocols)"
        )
    return given
