"""Tokens: who may do what, and how much of it.

A token reads `ada_ID_SECRET`. The database has a hash of the secret, which is random and so needs
no slow hash. Tokens are read anew for each request: a change holds at once.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from dataclasses import dataclass, replace
from typing import get_args

from sqlalchemy import Engine, Row, insert, select, update

from adaexplore.core.errors import BadInputError
from adaexplore.serve.messages import Scope
from adaexplore.serve.tables import tokens

_FORM = re.compile(r"ada_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True)
class Account:
    """A token without its secret.

    `most_jobs` may be queued or running at once, `most_candidates` judged in 24 hours,
    `most_requests` made in a minute. Jobs and quotas belong to the user, so that a new token of a
    user sees the old one's jobs. `expires_at` is in seconds since the epoch, None for never.
    """

    user: str
    scopes: tuple[Scope, ...]
    most_jobs: int = 4
    most_candidates: int = 1000
    most_requests: int = 600
    id: str = ""
    expires_at: float | None = None


def add_token(engine: Engine, account: Account) -> str:
    """Make a token; return it, since only its hash is kept.

    Raises `BadInputError` for a name or a scope that cannot be used.
    """
    if not _USER.fullmatch(account.user):
        raise BadInputError(f"user {account.user!r}: write letters, digits and _.@-, at most 64")
    unknown = set(account.scopes) - set(SCOPES)
    if unknown:
        raise BadInputError(f"scope {min(unknown)!r}: there are {', '.join(SCOPES)}")
    token_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    with engine.begin() as connection:
        connection.execute(
            insert(tokens).values(
                id=token_id,
                user=account.user,
                hash=_hash(secret),
                scopes=list(account.scopes),
                most_jobs=account.most_jobs,
                most_candidates=account.most_candidates,
                most_requests=account.most_requests,
                created_at=time.time(),
                expires_at=account.expires_at,
            )
        )
    return f"ada_{token_id}_{secret}"


def find_account(engine: Engine, token: str) -> Account | None:
    """Return the account of a token, None for a token that is unknown, wrong or expired."""
    match = _FORM.fullmatch(token)
    if match is None:
        return None
    with engine.begin() as connection:
        row = connection.execute(select(tokens).where(tokens.c.id == match[1])).first()
    right = hmac.compare_digest(row.hash if row else "", _hash(match[2]))
    if row is None or not right or (row.expires_at is not None and row.expires_at <= time.time()):
        return None
    return _account(row)


def accounts(engine: Engine) -> list[Account]:
    """Return all tokens, the oldest first; expired ones too."""
    with engine.begin() as connection:
        return [_account(row) for row in connection.execute(select(tokens).order_by("created_at"))]


def rotate_token(engine: Engine, token_id: str, grace_s: float) -> str:
    """Return a new token like an old one, which ends `grace_s` seconds from now.

    Raises `BadInputError` for an id that is unknown.
    """
    old = _named(engine, token_id)
    new = add_token(engine, replace(old, expires_at=None))
    _expire(engine, token_id, time.time() + grace_s)
    return new


def revoke_token(engine: Engine, token_id: str) -> None:
    """End a token at once; raise `BadInputError` for an id that is unknown."""
    _named(engine, token_id)
    _expire(engine, token_id, time.time())


def _named(engine: Engine, token_id: str) -> Account:
    for account in accounts(engine):
        if account.id == token_id:
            return account
    raise BadInputError(f"{token_id}: no such token; adaexplore serve token list has their ids")


def _expire(engine: Engine, token_id: str, at: float) -> None:
    with engine.begin() as connection:
        connection.execute(update(tokens).where(tokens.c.id == token_id).values(expires_at=at))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _account(row: Row[tuple[object, ...]]) -> Account:
    values = dict(row._mapping)
    for column in ("hash", "created_at"):
        del values[column]
    return Account(**values | {"scopes": tuple(values["scopes"])})
