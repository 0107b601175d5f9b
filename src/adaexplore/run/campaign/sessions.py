"""Sessions that several runs of a problem share: its reference is prepared once for all."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from adaexplore.core.problem import Problem
from adaexplore.core.settings.config import Config
from adaexplore.run.job import Servers
from adaexplore.run.session import Session
from adaexplore.run.verdicts.published_judge import beside_published


@dataclass(eq=False, slots=True)
class _Shared:
    """A session, the number of runs that use it now, and what ends it."""

    users: int = 0
    opening: threading.Lock = field(default_factory=threading.Lock)
    session: Session | None = None
    resources: ExitStack = field(default_factory=ExitStack)


class SharedSessions(Servers):
    """Fork servers, and on them one session for all runs of a problem; any thread may use them.

    A session that no run uses stays open until another problem needs one: the next run is likely to
    be of the same problem. `parallel` steps are in flight at once, of so many `problems` a device.
    """

    def __init__(self, parallel: int, problems: int = 1) -> None:
        super().__init__(parallel)
        self._problems = problems
        self._choosing = threading.Lock()
        self._sessions: dict[str, _Shared] = {}

    @contextmanager
    def session(self, problem: Problem, config: Config) -> Iterator[Session]:
        """See `Servers.session`; the published judge stands beside where `config` asks for it."""
        limits = [config.timeout_s, config.memory_gb]
        cache = [config.evaluation_cache, config.evaluation_scope]
        key = json.dumps([problem.to_json(), *limits, *cache], sort_keys=True)
        shared = self._taken(key)
        try:
            with shared.opening:
                if shared.session is None:
                    plain = config.model_copy(update={"published_judge": False})
                    opened = self.opened(problem, plain, self._parallel, self._problems)
                    shared.session = shared.resources.enter_context(opened)
            session = shared.session
            if config.published_judge:
                both = beside_published(session.evaluator, self.get(problem), problem, config)
                session = replace(session, evaluator=both)
            yield session
        finally:
            with self._choosing:
                shared.users -= 1

    def close(self) -> None:
        """End all sessions and servers."""
        self._end(list(self._sessions))
        super().close()

    def _taken(self, key: str) -> _Shared:
        """Return the session of a problem, with one more user; end those that nobody uses."""
        with self._choosing:
            idle = [other for other, one in self._sessions.items() if not one.users]
            if key not in self._sessions:
                self._end(idle)
            shared = self._sessions.setdefault(key, _Shared())
            shared.users += 1
            return shared

    def _end(self, keys: list[str]) -> None:
        for key in keys:
            self._sessions.pop(key).resources.close()
