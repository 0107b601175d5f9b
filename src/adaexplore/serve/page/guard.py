"""Who may ask for pages: hosts, origins, and the proof that a form came from a page of ours.

A page of another site can make a browser send requests here. It cannot read a form's `csrf` field,
nor send the header `Origin` of this site, nor, by a name of its own for this address, its `Host`.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.requests import Request

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "style-src-attr 'unsafe-inline'",  # widths of bars
        "img-src data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with none at all, forms would have no Origin
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_MOST_FIELDS = 10


class FormGuard:
    """Makes and checks the `csrf` fields of the forms of one process."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def field(self, session: str) -> str:
        """Return the field's value for a session, which is empty where nobody logs in."""
        return hmac.new(self._secret, session.encode(), hashlib.sha256).hexdigest()

    async def form(self, request: Request, session: str) -> dict[str, str]:
        """Return the fields of a form; raise `HTTPException` for one from elsewhere."""
        require_origin(request)
        body = (await request.body()).decode("utf-8", errors="replace")
        try:
            pairs = parse_qs(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            raise HTTPException(400, "the form has too many fields") from None
        fields = {name: values[-1] for name, values in pairs.items()}
        if not hmac.compare_digest(fields.get("csrf", "").encode(), self.field(session).encode()):
            raise HTTPException(403, "this form is out of date; load the page again")
        return fields


def require_origin(request: Request) -> None:
    """Raise `HTTPException` (403) unless a page of this very site sent the request."""
    origin = request.headers.get("origin", "").partition("://")[2]
    if not origin or origin != request.headers.get("host"):
        raise HTTPException(403, "this request does not come from a page of this site")


def require_loopback_host(request: Request) -> None:
    """Raise `HTTPException` (421) for a name by which another site could reach this address."""
    host = request.headers.get("host", "")
    name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if not port.isdecimal():
        name = host
    if name.lower() not in LOOPBACK:
        raise HTTPException(421, "these pages answer at 127.0.0.1 and localhost only")
