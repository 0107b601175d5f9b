"""From a client's order to a job: options checked, candidates counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adaexplore.core.ask import MANUAL
from adaexplore.core.errors import BadInputError
from adaexplore.core.settings.config import DEFAULT_STEPS, Config
from adaexplore.serve.accounts import Account
from adaexplore.serve.http.access import require
from adaexplore.serve.jobs import Jobs, NewJob
from adaexplore.serve.messages import (
    CampaignOrder,
    EvaluationOrder,
    JobInfo,
    Kind,
    ProblemSource,
    Scope,
    SearchOrder,
)
from adaexplore.serve.options import Bounds, config_of

_SCOPES: dict[Kind, Scope] = {
    "evaluation": "evaluate",
    "search": "search",
    "campaign": "campaign",
}


def evaluation_job(order: EvaluationOrder, bounds: Bounds, fixed: Mapping[str, str]) -> NewJob:
    """Return the job of an order; raise `BadInputError` for options that cannot be used.

    `fixed` are fields of `Config` that the service sets.
    """
    config = config_of(order.options, bounds).model_copy(update=dict(fixed))
    count = len(order.candidates)
    return _job("evaluation", [order.problem], config, count, candidates=order.candidates)


def search_job(order: SearchOrder, bounds: Bounds, fixed: Mapping[str, str]) -> NewJob:
    """Return the job of an order, as `evaluation_job` does."""
    config = config_of(order.options, bounds).model_copy(update=dict(fixed))
    return _job("search", [order.problem], config, config.planned_steps + config.tune)


def campaign_job(order: CampaignOrder, bounds: Bounds, fixed: Mapping[str, str]) -> NewJob:
    """Return the job of an order, as `evaluation_job` does."""
    config = config_of(order.options, bounds).model_copy(update=dict(fixed))
    if config.proposer == MANUAL:
        raise BadInputError("the prompts of a campaign are not answered here; submit searches")
    names = [problem.name for problem in order.problems]
    if len({name.lower() for name in names}) < len(names):
        raise BadInputError("two problems have the same name; give each its own")
    if config.steps is None and config.limits.steps is None:
        config = config.with_steps(DEFAULT_STEPS)  # a time or a price bounds no number of steps
    given = [config.limits.steps, config.steps and config.steps * len(names)]
    most = min(number for number in given if number is not None)
    return _job("campaign", order.problems, config, most + config.tune * len(names))


def continue_job(jobs: Jobs, account: Account, job: JobInfo) -> JobInfo:
    """Queue a job of a user that was stopped; raises as `Jobs.go_on` and `require` do."""
    require(account, _SCOPES[job.kind])
    try:
        config = jobs.order(job.id)["config"]
    except FileNotFoundError:
        raise BadInputError("the files of the job are gone; submit it again") from None
    if config.get("model"):
        require(account, "models")
    return jobs.go_on(account, job.id)


def _job(
    kind: Kind,
    problems: Sequence[ProblemSource],
    config: Config,
    count: int,
    candidates: Sequence[str] = (),
) -> NewJob:
    given = config.model_dump(mode="json", include=config.model_fields_set)
    return NewJob(
        kind=kind,
        scope=_SCOPES[kind],
        asks_models=bool(config.model),
        problem=problems[0].name,
        candidates=count,
        order={
            "kind": kind,
            "config": given,
            "problems": [problem.model_dump() for problem in problems],
            "candidates": list(candidates),
        },
    )
