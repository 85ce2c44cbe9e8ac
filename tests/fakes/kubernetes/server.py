"""The fake as a test holds it: a server on loopback, and everything a test may do to it."""

import asyncio
import secrets
import socket
from collections.abc import Iterable
from typing import Any

from aiohttp import web

from tests.fakes.kubernetes.api import Api, Options, Target
from tests.fakes.kubernetes.catalog import resources_of_definition
from tests.fakes.kubernetes.faults import RECORDED_CALLS, Faults, Hook, Record
from tests.fakes.kubernetes.http import Front
from tests.fakes.kubernetes.watching import Watch

Document = dict[str, Any]

ADMIN = "admin"


class FakeKubernetes:
    """A Kubernetes API server without a cluster behind it.

    `tokens` are the bearer tokens by user; every user may do everything. Who sends no token is
    refused (401), or taken for `anonymous`. `stop` and `start` keep the port and all state.
    """

    def __init__(
        self,
        users: Iterable[str] = (),
        *,
        anonymous: str = "",
        keep_calls: int = RECORDED_CALLS,
    ) -> None:
        self.tokens = {user: secrets.token_hex(8) for user in dict.fromkeys((ADMIN, *users))}
        self._users = {token: user for user, token in self.tokens.items()}
        self._front = Front(Api(), self._users, anonymous, keep_calls)
        self._runner: web.ServerRunner | None = None
        self._reserved: socket.socket | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def api(self) -> Api:
        return self._front.api

    @property
    def faults(self) -> Faults:
        return self._front.faults

    @property
    def record(self) -> Record:
        return self._front.record

    def add_user(self, user: str) -> str:
        """A token for a user that may do everything; the one it has, if it is known."""
        token = self.tokens.setdefault(user, secrets.token_hex(8))
        self._users[token] = user
        return token

    async def start(self, port: int = 0) -> None:
        """Listen; the port stays this server's while it is stopped."""
        if self._reserved is None:
            self._reserved = _bound(port)
            self.port = self._reserved.getsockname()[1]
        self._front.closing.clear()
        server = web.Server(self._front.handle, access_log=None)
        self._runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=0)
        await self._runner.setup()
        await web.SockSite(self._runner, _bound(self.port), backlog=1024).start()

    async def stop(self) -> None:
        """Be away: connections break, new ones are refused. State, port and history stay."""
        if self._runner is None:
            return
        runner, self._runner = self._runner, None
        self._front.closing.set()
        self.cut_watches()
        await asyncio.sleep(0)
        await runner.cleanup()

    async def close(self) -> None:
        """Stop, and give the port back."""
        await self.stop()
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    async def __aenter__(self) -> "FakeKubernetes":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def before_each_write(self, hook: Hook | None) -> None:
        """`hook` is called, and awaited, after a write arrived and before it is made."""
        self._front.before_write = hook

    def after_each_write(self, hook: Hook | None) -> None:
        """`hook` is called, and awaited, after a write is made and before its answer goes out."""
        self._front.after_write = hook

    def compact(self) -> None:
        """Forget all history: resuming a watch or a list from before now is 410."""
        self.api.store.compact(self.api.store.revision)

    def watches(self, resource: str = "") -> list[Watch]:
        """The watches that are open now."""
        return [each for each in self._front.watches if resource in ("", each.resource.plural)]

    def cut_watches(self, resource: str = "") -> int:
        """Break the connections of open watches; answers how many."""
        found = self.watches(resource)
        for each in found:
            each.end(cut=True)
        return len(found)

    def expire_watches(self, resource: str = "") -> int:
        """Send a 410 ERROR event to open watches."""
        found = self.watches(resource)
        for each in found:
            each.expire()
        return len(found)

    def stall_watches(self, resource: str = "", *, stalled: bool = True) -> int:
        """Open watches stay connected, past their time too, and send nothing; `stalled=False` sends
        what waited."""
        found = self.watches(resource)
        for each in found:
            each.stalled = stalled
            each.wake.set()
        return len(found)

    def send_to_watches(self, line: bytes, resource: str = "") -> int:
        """Put any line into open watches: junk, or an object that is none."""
        found = self.watches(resource)
        for each in found:
            each.send_line(line)
        return len(found)

    def send_bookmarks(self, resource: str = "") -> int:
        found = [each for each in self.watches(resource) if each.bookmarks]
        for each in found:
            each.send_bookmark()
        return len(found)

    def install(self, definition: Document) -> None:
        """Create a CustomResourceDefinition without a request."""
        crds = self.api.catalog.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert crds is not None
        self.api.create(Target(crds, ""), definition, Options(manager="kubectl"))
        assert resources_of_definition(definition)


def _bound(port: int) -> socket.socket:
    """A bound socket. Two may share a port, so that a stopped server's is nobody else's."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    found.bind(("127.0.0.1", port))
    return found
