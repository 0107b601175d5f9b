"""Budget of a run for models: limits, reservations and accounting."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.client import BudgetSpentError, ModelClient, Prompt, Reply, Usage
from adaexplore.core.text.units import estimated_tokens
from adaexplore.llm.prices import list_price_usd
from adaexplore.llm.wrapping import WrappingClient

_CHARACTERS_PER_TOKEN = 3.0
"""Fewer than in prose, since code and figures take more tokens; reservations err upwards."""
_FIRST_REPLY_TOKENS = 4000.0
"""Expected length of a reply before the first one."""


class Budget:
    """Money and tokens of one run, shared by all its clients; thread-safe.

    The estimate of a call is reserved before it begins, so that calls in flight cannot together
    exceed a limit that each of them alone would keep. `spent` is the usage of earlier sessions of
    the run. Tokens are those of prompts and replies together.
    """

    def __init__(
        self,
        limit_usd: float | None = None,
        limit_tokens: int | None = None,
        *,
        spent: Usage | None = None,
    ) -> None:
        self.limit_usd = limit_usd
        self.limit_tokens = limit_tokens
        self._spent = spent or Usage()
        self._reserved: list[Usage] = []
        self._replies = 0
        self._reply_tokens = 0
        self._changed = threading.Condition()

    @property
    def spent(self) -> Usage:
        """Usage so far, without calls in flight; `cost_usd` sums the known costs."""
        with self._changed:
            return self._spent

    @property
    def expected_reply_tokens(self) -> float:
        """Mean length of the replies so far, in tokens."""
        with self._changed:
            return self._reply_tokens / self._replies if self._replies else _FIRST_REPLY_TOKENS

    @contextmanager
    def call(self, estimate: Usage) -> Iterator[list[Usage]]:
        """Reserve `estimate` during a call, which appends its actual usage to the yielded list.

        Waits while only the reservations of other calls exceed a limit. Raises `BudgetSpentError`
        if the estimate exceeds the remaining budget.
        """
        used: list[Usage] = []
        with self._changed:
            while not self._fits(estimate):
                if not self._reserved:
                    raise BudgetSpentError(self._refusal(estimate))
                self._changed.wait()
            self._reserved.append(estimate)
        try:
            yield used
        finally:
            with self._changed:
                self._reserved.remove(estimate)
                for usage in used:
                    self._spent = _sum(self._spent, usage)
                    self._replies += 1
                    self._reply_tokens += usage.output_tokens
                self._changed.notify_all()

    def _fits(self, estimate: Usage) -> bool:
        total = estimate
        for usage in (self._spent, *self._reserved):
            total = _sum(total, usage)
        return (self.limit_usd is None or (total.cost_usd or 0.0) <= self.limit_usd) and (
            self.limit_tokens is None or _tokens(total) <= self.limit_tokens
        )

    def _refusal(self, estimate: Usage) -> str:
        parts = []
        if self.limit_usd is not None:
            cost, more = self._spent.cost_usd or 0.0, estimate.cost_usd or 0.0
            parts.append(f"{cost:.4g} of {self.limit_usd:g} usd, the next call may take {more:.2g}")
        if self.limit_tokens is not None:
            tokens, more = _tokens(self._spent), _tokens(estimate)
            parts.append(f"{tokens} of {self.limit_tokens} tokens, the next call may take {more}")
        return f"the budget is used up: {'; '.join(parts)}"


class BudgetedClient(WrappingClient):
    """Client whose calls count against a budget.

    Missing token counts and costs are estimated from the length of prompt and reply. Raises
    `BadInputError` if the budget is in money and the model's price is unknown.
    """

    def __init__(self, client: ModelClient, budget: Budget) -> None:
        if budget.limit_usd is not None and _priced(client.model, 1, 1).cost_usd is None:
            raise BadInputError(
                f"no price is known for {client.model}: give its budget in tokens, steps or time, "
                "as in 500ktok, 100steps or 2h"
            )
        super().__init__(client)
        self._budget = budget

    def ask(self, prompt: Prompt) -> Reply:
        """Return the client's reply if the budget allows the call."""
        prompt_tokens = _prompt_tokens(prompt)
        reply_tokens = round(self._budget.expected_reply_tokens)
        with self._budget.call(_priced(self.model, prompt_tokens, reply_tokens)) as used:
            reply = self._client.ask(prompt)
            used.append(counted(prompt, reply))
        return reply


def counted(prompt: Prompt, reply: Reply) -> Usage:
    """Return the usage of a call: the provider's, or an estimate from its length."""
    usage = reply.usage
    if not _tokens(usage):
        sent = sum(estimated_tokens(message.text) for message in prompt.messages)
        return _priced(reply.model, sent, estimated_tokens(reply.text))
    if usage.cost_usd is None:
        return _priced(reply.model, usage.input_tokens, usage.output_tokens)
    return usage


def total(usages: Iterable[Usage]) -> Usage:
    """Return the sum of the usages; `cost_usd` sums the known costs."""
    return functools.reduce(_sum, usages, Usage())


def _priced(model: str, input_tokens: int, output_tokens: int) -> Usage:
    cost_usd = list_price_usd(model, input_tokens, output_tokens)
    return Usage(input_tokens, output_tokens, cost_usd=cost_usd)


def _prompt_tokens(prompt: Prompt) -> int:
    return round(sum(len(message.text) for message in prompt.messages) / _CHARACTERS_PER_TOKEN)


def _tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


def _sum(a: Usage, b: Usage) -> Usage:
    costs = [cost for cost in (a.cost_usd, b.cost_usd) if cost is not None]
    return Usage(
        a.input_tokens + b.input_tokens,
        a.output_tokens + b.output_tokens,
        a.cached_tokens + b.cached_tokens,
        sum(costs) if costs else None,
    )
