"""Audit log: one JSON object a line for each request, with its user and its outcome."""

from __future__ import annotations

import json
import logging
import time
from logging.handlers import WatchedFileHandler
from pathlib import Path

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

_UNSAID = ("/health", "/metrics")


def open_audit(file: Path) -> logging.Logger:
    """Return the logger of a file, which logrotate may move away."""
    logger = logging.Logger("audit")  # not the root's child: no other handler sees it
    handler = WatchedFileHandler(file, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.addHandler(handler)
    file.chmod(0o600)
    return logger


def log_message(logger: logging.Logger, socket: HTTPConnection, kind: str) -> None:
    """Log a message on a WebSocket, such as a step, as `log_request` does a request."""
    _log(logger, socket, f"WS {kind}", 200)


def log_request(logger: logging.Logger, request: Request, response: Response) -> None:
    """Log a request; it names no secret and no source."""
    if request.url.path in _UNSAID:
        return
    _log(logger, request, request.method, response.status_code)


def _log(logger: logging.Logger, request: HTTPConnection, method: str, status: int) -> None:
    entry = {
        "at": round(time.time(), 3),
        "user": getattr(request.state, "user", None),
        "token": getattr(request.state, "token", None),
        "address": request.client.host if request.client else None,
        "method": method,
        "path": request.url.path[:200],
        "status": status,
        "job": getattr(request.state, "job", None),
    }
    logger.info(json.dumps(entry))
