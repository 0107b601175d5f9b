"""Who asks, and how often: the token of a request, its scopes and its rate."""

from __future__ import annotations

import base64

from fastapi import HTTPException, Request
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from sqlalchemy import Engine
from starlette.requests import HTTPConnection

from adaexplore.serve.accounts import Account, find_account
from adaexplore.serve.messages import Scope

_WRONG_TOKENS = RateLimitItemPerMinute(30)
"""Requests without a right token that one address may make."""


class AccessGate:
    """Lets requests with a right token in, at most as many a minute as its account says.

    Raises `HTTPException`: 401 without a right token, 403 without the scope, 429 for too many.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def account(self, request: Request) -> Account:
        """Return the account of a request."""
        return self.account_of(request)

    def account_of(self, request: HTTPConnection) -> Account:
        """Return the account of a request, or of a WebSocket."""
        return self.of_token(request, _token(request.headers.get("authorization", "")))

    def of_token(self, request: HTTPConnection, token: str) -> Account:
        """Return the account of a token that came with a request."""
        account = find_account(self._engine, token)
        if account is None:
            address = request.client.host if request.client else ""
            if not self._limiter.hit(_WRONG_TOKENS, "wrong", address):
                raise _too_many("requests without a right token")
            raise HTTPException(
                401,
                "give a valid token: Authorization: Bearer ada_...",
                {"WWW-Authenticate": "Bearer"},
            )
        request.state.user, request.state.token = account.user, account.id
        self.count(account)
        return account

    def admits(self, request: HTTPConnection) -> bool:
        """Return True while the token of a request holds; it counts as no request."""
        token = _token(request.headers.get("authorization", ""))
        return find_account(self._engine, token) is not None

    def count(self, account: Account) -> None:
        """Count a request of an account, or a message on its WebSocket."""
        rate = RateLimitItemPerMinute(account.most_requests)
        if not self._limiter.hit(rate, "token", account.id):
            raise _too_many(f"requests: at most {account.most_requests} a minute")


def _token(authorization: str) -> str:
    """Return the token of a header: a bearer's, or the password of a client's URL."""
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return given
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(given, validate=True).decode().partition(":")[2]
    except ValueError:  # no base64, or no text in it
        return ""


def require(account: Account, scope: Scope) -> None:
    """Raise `HTTPException` (403) for an account without a scope."""
    if scope not in account.scopes:
        raise HTTPException(403, f"this token lacks the scope {scope!r}")


def _too_many(what: str) -> HTTPException:
    return HTTPException(429, f"too many {what}; try again in a minute", {"Retry-After": "60"})
