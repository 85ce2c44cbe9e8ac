"""The API over HTTP: a request becomes a call, meets faults and hooks, and is answered."""

import asyncio
import contextlib
import inspect
import random
from collections.abc import Mapping

import orjson
from aiohttp import web

from tests.fakes.kubernetes import answering
from tests.fakes.kubernetes.api import Api, Target
from tests.fakes.kubernetes.discovery import discovery
from tests.fakes.kubernetes.faults import Answer, Call, Cut, Fault, Faults, Hang, Hook, Page, Record
from tests.fakes.kubernetes.reading import Selection, starting_revision
from tests.fakes.kubernetes.requests import TRUE, target_of, verb_of
from tests.fakes.kubernetes.status import ApiError, unknown_resource
from tests.fakes.kubernetes.watching import Watch

VERSION = {"major": "1", "minor": "34", "gitVersion": "v1.34.0-fake", "platform": "linux/amd64"}
LONGEST_WATCH_SECONDS = 3600
BOOKMARK_SECONDS = 60.0
_JSON = {"Content-Type": "application/json"}
_HEALTH = frozenset({"/healthz", "/livez", "/readyz"})


class Front:
    """Everything a server process keeps between requests, and the handler of them."""

    def __init__(self, api: Api, users: Mapping[str, str], anonymous: str, keep: int) -> None:
        self.api = api
        self.users = users
        self.anonymous = anonymous
        self.faults = Faults()
        self.record = Record(keep)
        self.before_write: Hook | None = None
        self.after_write: Hook | None = None
        self.watches: set[Watch] = set()
        self.closing = asyncio.Event()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._handle(request)
        except ApiError as error:
            return _json(error.body(), error.code, error.headers)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        user = self._user(request)
        path = request.path
        if path in _HEALTH:
            return web.Response(text="ok")
        if path == "/version":
            return _json(orjson.dumps(VERSION))
        target = target_of(self.api.catalog, path)
        if target is None:
            return self._discovery(request, user)
        call = _call(request, user, target, await request.read())
        self.record.begun(call)
        try:
            return await self._answer(request, target, call)
        except ApiError as error:
            call.code = error.code
            raise
        finally:
            self.record.answered(call)

    def _user(self, request: web.BaseRequest) -> str:
        authorization = request.headers.get("Authorization", "")
        if not authorization and self.anonymous:
            return self.anonymous
        kind, _, token = authorization.partition(" ")
        if kind != "Bearer" or token not in self.users:
            raise ApiError(401, "Unauthorized")
        return self.users[token]

    def _discovery(self, request: web.BaseRequest, user: str) -> web.StreamResponse:
        if fault := self.faults.strike(
            Call("discover", request.method, request.path, {}, user, "", "", "", "", b"")
        ):
            return _broken_off(fault)
        served = self.api.catalog.served()
        found = discovery(served, request.path) if request.method == "GET" else None
        if found is None and self.api.catalog.built_in(request.path):
            raise unknown_resource()
        if found is None:
            return web.Response(text="404 page not found\n", status=404)
        return _json(orjson.dumps(found))

    async def _answer(
        self, request: web.BaseRequest, target: Target, call: Call
    ) -> web.StreamResponse:
        fault = self.faults.strike(call)
        if fault is not None and not fault.carried_out:
            return await self._struck(request, fault, call)
        if call.writes:
            await _told(self.before_write, call)
        if call.verb == "watch":
            return await self._watch(request, target, call)
        content_type = request.headers.get("Content-Type", "").partition(";")[0].strip()
        agent = request.headers.get("User-Agent", "")
        code, body = answering.answer(self.api, target, call, content_type, agent)
        call.code = code
        if call.writes:
            await _told(self.after_write, call)
        if fault is not None:
            return await self._struck(request, fault, call, body)
        return _json(body, code)

    async def _struck(
        self, request: web.BaseRequest, fault: Fault, call: Call, body: bytes = b"{" * 1000
    ) -> web.StreamResponse:
        if isinstance(fault.action, Hang):
            call.code = 0
            await self.closing.wait()
        elif isinstance(fault.action, Cut):
            call.code = 0
            return await _cut(request, body)
        else:
            call.code = fault.action.code
        return _broken_off(fault)

    async def _watch(
        self, request: web.BaseRequest, target: Target, call: Call
    ) -> web.StreamResponse:
        query = dict(call.query)
        if target.name:
            query["fieldSelector"] = f"metadata.name={target.name}"
        watch = Watch(self.api.store, target.resource, Selection.read(target, query))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        call.code = 200
        try:
            revision = starting_revision(self.api.store, query)
        except ApiError as error:
            if error.code != 410:
                raise
            await response.prepare(request)
            watch.send_error(error)
            await _send(response, watch)
            return response
        watch.bookmarks = query.get("allowWatchBookmarks") in TRUE
        initial = query.get("sendInitialEvents") in TRUE
        watch.begin(None if initial else revision)
        if initial and watch.bookmarks:
            watch.send_bookmark(initial_end=True)
        self.watches.add(watch)
        try:
            await response.prepare(request)
            await _follow(request, response, watch, int(query.get("timeoutSeconds") or 0))
        except (ConnectionError, asyncio.CancelledError):
            if request.transport is not None and not request.transport.is_closing():
                raise
        finally:
            self.watches.discard(watch)
            watch.close()
        return response


async def _follow(
    request: web.BaseRequest, response: web.StreamResponse, watch: Watch, timeout_seconds: int
) -> None:
    loop = asyncio.get_running_loop()
    longest = timeout_seconds or random.randint(LONGEST_WATCH_SECONDS // 2, LONGEST_WATCH_SECONDS)
    end = loop.time() + longest
    while True:
        watch.wake.clear()
        if not watch.stalled:
            await _send(response, watch)
        if watch.ended:
            break
        left = end - loop.time()
        if left <= 0 and not watch.stalled:
            return
        pause = min(left, BOOKMARK_SECONDS) if left > 0 else BOOKMARK_SECONDS
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await watch.wake.wait()
            continue
        if watch.bookmarks:
            watch.send_bookmark()
    if watch.cut and request.transport is not None:
        request.transport.abort()


async def _send(response: web.StreamResponse, watch: Watch) -> None:
    while watch.lines:
        waiting = b"".join(watch.lines)
        watch.lines.clear()
        await response.write(waiting)


def _call(request: web.BaseRequest, user: str, target: Target, raw: bytes) -> Call:
    content_type = request.headers.get("Content-Type", "").partition(";")[0].strip()
    query = dict(request.query)
    return Call(
        verb=verb_of(request.method, target, query, content_type),
        method=request.method,
        path=request.path,
        query=query,
        user=user,
        plural=target.resource.plural,
        subresource=target.subresource,
        namespace=target.namespace,
        name=target.name,
        raw=raw,
    )


async def _told(hook: Hook | None, call: Call) -> None:
    if hook is not None:
        waiting = hook(call)
        if inspect.isawaitable(waiting):
            await waiting


async def _cut(request: web.BaseRequest, body: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = len(body)
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


def _broken_off(fault: Fault) -> web.Response:
    action = fault.action
    if isinstance(action, Page):
        return web.Response(text=action.text, status=action.code, content_type="text/html")
    if isinstance(action, Answer):
        error = ApiError(
            action.code,
            action.message,
            reason=action.reason,
            retry_after_seconds=action.retry_after_seconds,
        )
        return _json(error.body(), error.code, error.headers)
    return _json(ApiError(503, "the server is stopping").body(), 503)


def _json(body: bytes, code: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(body=body, status=code, headers={**_JSON, **(headers or {})})
