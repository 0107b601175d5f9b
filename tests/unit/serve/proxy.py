"""A reverse proxy with TLS on loopback, which sends requests on from an address of its own."""

from contextlib import contextmanager

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from loopback import in_thread

ADDRESS = "127.0.0.2"
_METHODS = ["GET", "POST"]
_OWN = (b"x-forwarded-for", b"x-forwarded-proto")


@contextmanager
def proxying(to: str, certificate, key):
    """Yield the URL of a proxy that does what docs/serving.md asks for."""
    transport = httpx.AsyncHTTPTransport(local_address=ADDRESS)
    client = httpx.AsyncClient(base_url=to, transport=transport, timeout=60)

    async def pass_on(request: Request) -> StreamingResponse:
        came = [value for name, value in request.headers.raw if name == b"x-forwarded-for"]
        forwarded = b", ".join([*came, request.client.host.encode()])
        headers = [header for header in request.headers.raw if header[0] not in _OWN]
        headers += [(b"x-forwarded-for", forwarded), (b"x-forwarded-proto", b"https")]
        target, body = str(request.url).split(request.headers["host"], 1)[1], await request.body()
        asked = client.build_request(request.method, target, headers=headers, content=body)
        answer = await client.send(asked, stream=True)
        passed = StreamingResponse(
            answer.aiter_raw(), answer.status_code, background=BackgroundTask(answer.aclose)
        )
        passed.raw_headers = answer.headers.raw
        return passed

    app = Starlette(routes=[Route("/{path:path}", pass_on, methods=_METHODS)])
    config = uvicorn.Config(
        app,
        port=0,
        log_level="warning",
        proxy_headers=False,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        timeout_graceful_shutdown=1,
    )
    with in_thread(uvicorn.Server(config)) as port:
        yield f"https://127.0.0.1:{port}"
