"""An HTTP server that answers as a test says, request by request, and a clock that doesn't wait.

For what no well-behaved API server does: pages of proxies, junk, silence, half answers.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from inferbus_shared.clock import REAL_TIME, Anchor
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.settings import KubeSettings

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class TimelessClock:
    """Waiting takes no time and is added up."""

    anchor: Anchor = REAL_TIME

    def __init__(self) -> None:
        self.waited: list[float] = []
        self._now_ms = 1_000_000

    def now_ms(self) -> int:
        return self._now_ms

    def steady_ms(self) -> int:
        return self._now_ms

    async def sleep(self, seconds: float) -> None:
        if seconds:
            self.waited.append(seconds)
            self._now_ms += round(seconds * 1000)
        await asyncio.sleep(0)


class Scripted:
    """Answers by turns: what `script` says, and `always` when that is used up."""

    def __init__(self) -> None:
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.script: list[Answer] = []
        self.always: Answer = page()
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(await request.read())
        answer = self.script.pop(0) if self.script else self.always
        return await answer(request)

    def watches(self) -> list[web.Request]:
        return [request for request in self.requests if request.query.get("watch")]

    def lists(self) -> list[web.Request]:
        return [request for request in self.requests if not request.query.get("watch")]


@asynccontextmanager
async def scripted() -> AsyncIterator[Scripted]:
    server = Scripted()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def client_of(server: Scripted, clock: TimelessClock | None = None, **settings: Any) -> KubeClient:
    return KubeClient(KubeSettings(server=server.url, **settings), clock=clock or TimelessClock())


def pod(name: str, revision: int, namespace: str = "default", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-of-{name}",
            "resourceVersion": str(revision),
            "labels": labels,
        },
    }


def listing(revision: int, *items: object, following: str = "") -> dict[str, Any]:
    metadata = {"resourceVersion": str(revision), "continue": following}
    return {"kind": "PodList", "metadata": metadata, "items": list(items)}


def status(code: int, reason: str = "", message: str = "", **more: Any) -> dict[str, Any]:
    return {"kind": "Status", "code": code, "reason": reason, "message": message, **more}


def event(type_: str, body: object) -> bytes:
    return json.dumps({"type": type_, "object": body}).encode() + b"\n"


def says(body: object, code: int = 200, **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.json_response(body, status=code, headers=named)

    return answer


def page(code: int = 502, text: str = "<html>Bad Gateway</html>") -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=code, text=text, content_type="text/html")

    return answer


def refuses(code: int, reason: str = "", message: str = "") -> Answer:
    return says(status(code, reason, message), code)


def streams(lines: Sequence[bytes], then: asyncio.Event | None = None) -> Answer:
    """A watch with these lines; open until `then`, or ended at once without."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for line in lines:
            await response.write(line)
        if then is not None:
            await then.wait()
        return response

    return answer


def breaks_off(body: bytes, length: int) -> Answer:
    """Promises `length` bytes and hangs up after those of `body`."""

    async def answer(request: web.Request) -> web.StreamResponse:
        headers = {"Content-Type": "application/json", "Content-Length": str(length)}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        await response.write(body)
        assert request.transport is not None
        request.transport.close()
        return response

    return answer
