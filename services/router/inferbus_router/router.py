"""The router: takes requests and tables in, hands demand out.

Invariant: a table is taken over between two events of the loop, whole; a request that is being
served keeps what it was matched with, one that is held is matched again.
"""

import asyncio
from collections.abc import Callable
from urllib.parse import unquote

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import EXTERNAL_MODEL_PROVIDER
from inferbus_router.cors import options_page
from inferbus_router.demand import SECOND_MS, SUM_MS, DemandSums
from inferbus_router.errors import (
    RequestError,
    method_not_allowed,
    model_not_found,
    unknown_path,
)
from inferbus_router.exchange import Exchange
from inferbus_router.gateway_matching import MODEL_PATHS, is_routed
from inferbus_router.http_messages import Page
from inferbus_router.ledger import Ledger
from inferbus_router.pages import message_page, model_page, models_page
from inferbus_router.ports import DemandSink, Parts
from inferbus_router.record import RequestRecord
from inferbus_router.request import Request
from inferbus_router.server_protocol import RunningRequest, ServerProtocol
from inferbus_router.state import RouterState
from inferbus_router.table import RoutingTable

_LEAST_TICK_SECONDS = 0.01
_READ = (b"GET", b"HEAD")
_PAGES = frozenset({"/healthz", "/readyz", "/v1/models"})


class Router:
    """Serves requests by the table it was given last; a `RequestHandler` and a `TableSink`."""

    def __init__(self, name: str, state: RouterState, demand: DemandSink) -> None:
        """`name` tells this router from others in the demand it reports."""
        self.state = state
        self.ready = asyncio.Event()
        """Set once the first whole table was applied."""
        self._name = name
        self._demand = demand
        self._sums = DemandSums(name)
        self._without_credential: list[ObjectKey] = []
        """As it was told last."""
        self._ticker: asyncio.TimerHandle | None = None
        self.on_ports: Callable[[frozenset[int]], None] = lambda ports: None
        """Called with the ports of Gateways when they may have changed."""
        state.on_held = self._tell_pending

    @property
    def ledger(self) -> Ledger:
        """The counters."""
        return self.state.ledger

    # Requests.

    def handle(self, client: ServerProtocol, request: Request) -> RunningRequest | None:
        """Serve a request; None where it is answered already."""
        head = request.head
        state = self.state
        access = state.access
        if access.is_needed and (refusal := access.refusal(request)) is not None:
            self._refuse(client, request, refusal)
            return None
        if head.method == b"POST" and (
            head.path.startswith(MODEL_PATHS) or is_routed(state.table, head, client)
        ):
            if state.tracer is not None:
                state.tracer.begin(request)
            exchange = Exchange(self.state, client, request)
            return exchange if exchange.begin() else None
        self._answer(client, request)
        return None

    def _refuse(self, client: ServerProtocol, request: Request, error: RequestError) -> None:
        self.refused(request, error)
        client.answer(request, self.state.page_of(error, request.head))

    def _answer(self, client: ServerProtocol, request: Request) -> None:
        record = RequestRecord(request, self.state.now_ms())
        try:
            page = self._page(request)
            if self.state.cors is not None and request.head.method != b"OPTIONS":
                self.state.cors.permit(page, request.head)
        except RequestError as error:
            record.fail(error)
            page = self.state.page_of(error, request.head)
        record.status = page.status
        record.ended_ms = record.arrived_ms
        if request.head.path.startswith("/v1/"):
            self.ledger.book(record)
        client.answer(request, page)

    def _page(self, request: Request) -> Page:
        """The router's own answer; raises `RequestError` where it has none."""
        method, path = request.head.method, request.head.path
        page: Page | None
        if method == b"OPTIONS":
            return options_page(self.state.cors, request.head, _methods_of(path))
        if path == "/healthz":
            page = message_page(200, "ok")
        elif path == "/readyz":
            page = self.readiness()
        elif path == "/v1/models":
            page = models_page(self.state.table)
        elif path.startswith("/v1/models/"):
            name = unquote(path.removeprefix("/v1/models/"))
            page = model_page(self.state.table, name)
            if page is None:
                raise model_not_found(name)
        elif path.startswith("/v1/"):
            raise method_not_allowed(method.decode(), path, b"POST")
        else:
            raise unknown_path(path)
        if method not in _READ:
            raise method_not_allowed(method.decode(), path, b"GET, HEAD")
        return page

    def readiness(self) -> Page:
        """Whether requests should be sent here (routing spec 2.1)."""
        if self.ready.is_set():
            return message_page(200, "router is ready")
        return message_page(503, "router is not ready")

    def refused(self, request: Request | None, error: RequestError) -> None:
        """Count and log a request that was refused before it was complete."""
        record = RequestRecord(request, self.state.now_ms())
        record.fail(error)
        record.ended_ms = record.arrived_ms
        self.ledger.book(record)

    # Tables.

    def apply(self, parts: Parts) -> None:
        """Serve by these parts too from now on."""
        self._serve_by(self.state.table.with_parts(parts))

    def replace(self, parts: Parts) -> None:
        """Serve by these parts alone from now on."""
        self._serve_by(self.state.table.replaced_by(parts))

    @property
    def table_digest(self) -> str:
        """Digest over the parts that are served by."""
        return self.state.table.digest

    def _serve_by(self, table: RoutingTable) -> None:
        state, earlier = self.state, self.state.table
        state.table = table
        gone = state.fleet.sync(table, state.now_ms())
        for endpoint in gone:
            endpoint.retire()
        state.on_table(gone)
        if table.has_lost_names(earlier):
            state.plans.forget()
            self.ledger.demand.forget_idle()
        else:
            state.plans.forget_some(
                (route.key for route in table.change.gone), table.change.servers
            )
        if table.change.has_routes:
            self.ledger.follow(table, state.now_ms())
            state.access.follow(table)
            if state.queues is not None:
                state.queues.follow(table.indexes.names)
        if table.gateways is not earlier.gateways:
            self.on_ports(table.gateways.ports if table.gateways else frozenset())
        for held in state.hold.items():
            held.table_changed()
        if any(key.kind == EXTERNAL_MODEL_PROVIDER for key in table.change.servers):
            self._tell_credentials()

    def snapshot_ended(self) -> None:
        """All parts that existed at the start were applied."""
        self.ready.set()

    # Demand.

    def start(self) -> None:
        """Begin to report demand."""
        self._set_ticker()

    def stop(self) -> None:
        """Report what is left, unfinished intervals too, and let go of timers and connections."""
        if self._ticker is not None:
            self._ticker.cancel()
            self._tell_demand(self.state.now_ms() + SECOND_MS, SUM_MS)
        self.state.stop()

    def _set_ticker(self) -> None:
        state = self.state
        wait_ms = (SECOND_MS - state.now_ms() % SECOND_MS) / state.rate
        seconds = max(_LEAST_TICK_SECONDS, wait_ms / 1000)
        self._ticker = asyncio.get_running_loop().call_later(seconds, self._tick)

    def _tick(self) -> None:
        self._tell_demand(self.state.now_ms())
        self._tell_pending()
        self._tell_credentials()
        self._set_ticker()

    def _tell_demand(self, now_ms: int, early_ms: int = 0) -> None:
        """What is over by `now_ms`; sums `early_ms` before they are."""
        seconds = self.ledger.demand.flush(now_ms)
        self._sums.add(seconds)
        for second in seconds:
            self._demand.observed(second.target, second.data)
        for ten_seconds in self._sums.flush(now_ms + early_ms):
            self._demand.summed(ten_seconds.target, ten_seconds.data)

    def _tell_credentials(self) -> None:
        credentials = self.state.credentials
        missing = sorted(
            server.key
            for server in self.state.table.servers.values()
            if server.provider is not None
            and server.provider.secret is not None
            and credentials.value(server.provider.secret) is None
        )
        if missing != self._without_credential:
            self._without_credential = missing
            self._demand.without_credential(missing)

    def _tell_pending(self) -> None:
        for pending in self.state.hold.pending(self._name):
            self._demand.pending(pending.target, pending.data)


def _methods_of(path: str) -> bytes:
    """What can be done there; raises `RequestError` where nothing can."""
    if path in _PAGES or path.startswith("/v1/models/"):
        return b"GET, HEAD, OPTIONS"
    if path.startswith("/v1/"):
        return b"POST, OPTIONS"
    raise unknown_path(path)
