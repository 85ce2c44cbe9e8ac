"""Puts a router together and takes it apart: the one place that knows all its pieces.

Invariant: clients are accepted only when everything behind the listener stands, and it is taken
away only after they are gone.
"""

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_router.access import AccessControl, Authenticator
from inferbus_router.access_log import LineFormat, json_line, text_line
from inferbus_router.admin import AdminPages
from inferbus_router.endpoint import ConnectionSettings
from inferbus_router.gateway_ports import GatewayPorts
from inferbus_router.ledger import Ledger
from inferbus_router.limits import ClosableLink, Limiters
from inferbus_router.listener import Listener, bound_socket, inherited_socket
from inferbus_router.listener_tls import ServedCertificate, served_certificate, watch
from inferbus_router.log_writer import LogWriter, open_log
from inferbus_router.operations import Operations
from inferbus_router.policy_authentication import AuthenticationPolicy
from inferbus_router.ports import DemandSink
from inferbus_router.queue_settings import QueueSettings
from inferbus_router.record import RequestRecord
from inferbus_router.router import Router
from inferbus_router.settings import RouterSettings
from inferbus_router.state import RouterState
from inferbus_router.timekeeper import Timekeeper
from inferbus_router.upstream_tls import UpstreamTls
from inferbus_shared.clock import REAL_TIME, Clock, real_now_ms

_LINE_FORMATS: dict[str, LineFormat] = {"text": text_line, "json": json_line}


@dataclass
class RunningRouter:
    """A router, and what it consists of; `accept` lets clients in."""

    router: Router
    listener: Listener
    """For clients."""
    admin: Listener
    """For operators."""
    gateways: GatewayPorts
    """For clients of other ports than the router's own."""
    _clients: socket.socket
    _settings: RouterSettings
    _log: LogWriter | None
    _socket_keeper: Timekeeper
    operations: Operations
    _certificate: ServedCertificate | None

    async def accept(self) -> None:
        """Serve clients from now on. Until then their connections wait, or go to other workers.

        Without a table every model would be unknown: a worker that starts anew must not say so.
        """
        shown = self._certificate
        await self.listener.open(self._clients, shown.context if shown else None)

    async def stop(self) -> None:
        """Drain, and stop; takes at most the grace period."""
        settings = self._settings
        await asyncio.gather(
            self.listener.drain(settings.drain_linger_seconds, settings.grace_seconds),
            self.gateways.stop(),
        )
        self._clients.close()
        await self.router.ledger.limiters.flush()
        self.router.stop()
        await self.operations.stop()
        self._socket_keeper.stop()
        await self.admin.drain(0, 0)
        if self._log is not None:
            self._log.close()


async def start_router(
    settings: RouterSettings,
    clock: Clock,
    name: str,
    demand: DemandSink,
    queues: QueueSettings | None = None,
) -> RunningRouter:
    """A router with an empty table that accepts no clients yet; raises `ProblemsError`.

    `name` tells it from other routers in the demand it reports; without `queues` requests are
    served in the order they come.
    """
    access = _access_control(settings)
    certificate, upstream_tls = served_certificate(settings), UpstreamTls(settings)
    log = _open_access_log(settings)
    loop = asyncio.get_running_loop()

    def socket_now_ms() -> int:
        return int(loop.time() * 1000)

    now_ms = real_now_ms if clock.anchor == REAL_TIME else clock.now_ms
    keeper = Timekeeper(socket_now_ms)
    connections = ConnectionSettings(
        settings.connect_timeout_seconds,
        round(settings.pool_idle_timeout_seconds * 1000),
        keeper,
        upstream_tls,
    )
    if certificate is not None:
        watch(certificate, keeper, round(settings.tls_reload_seconds * 1000))
    limiters = Limiters(partial(_redis_link, settings.limit_deadline_ms / 1000))
    ledger = Ledger(name, now_ms(), log.write if log else _no_log, limiters)
    state = RouterState(settings, ledger, now_ms, clock.anchor.rate, connections, access, queues)
    operations = Operations(settings, state, connections, name)
    sockets = _open_sockets(settings)
    router = Router(name, state, demand)
    listener = Listener(router, settings)

    def gauges() -> Iterator[tuple[str, str, float]]:
        yield "client_connections", "Open connections of clients", listener.connections
        yield "held_requests", "Requests that wait for a replica", len(state.hold)
        yield "table_revision", "Revision of the routing table", state.table.revision
        yield "silent_limit_servers", "Redis servers that do not answer", limiters.silent_servers
        yield "limit_fallbacks", "Requests limited without their Redis server", limiters.fallbacks
        yield "access_log_dropped_lines", "Lines that were lost", log.dropped if log else 0
        yield from operations.gauges()

    admin = Listener(AdminPages(router, gauges, operations), settings)
    await admin.open(sockets.admin)
    router.start()
    gateways = GatewayPorts(router, settings, sockets.client_port)
    router.on_ports = gateways.follow
    await operations.start(sockets.debug)
    return RunningRouter(
        router,
        listener,
        admin,
        gateways,
        sockets.clients,
        settings,
        log,
        keeper,
        operations,
        certificate,
    )


def _redis_link(deadline_seconds: float, address: str) -> ClosableLink:
    # only routers with limits that are shared pay for the library
    from inferbus_router.redis_link import RedisLink

    return RedisLink(address, deadline_seconds)


def _access_control(settings: RouterSettings) -> AccessControl:
    def authenticate(policy: AuthenticationPolicy) -> Authenticator:
        # only routers that check credentials pay for the libraries
        from inferbus_router.authentication import Authentication
        from inferbus_router.jwks import KeySetTimes, fetch_document

        times = KeySetTimes(settings.jwks_refresh_seconds, settings.jwks_least_gap_seconds)
        return Authentication(policy, fetch_document, real_now_ms, times)

    path = settings.api_keys_path
    return AccessControl(authenticate, (path,) if path else (), settings.forward_credentials)


@dataclass(frozen=True)
class _Sockets:
    clients: socket.socket
    admin: socket.socket
    debug: socket.socket | None

    @property
    def client_port(self) -> int:
        """The router's own."""
        port: int = self.clients.getsockname()[1]
        return port


def _open_sockets(settings: RouterSettings) -> _Sockets:
    if settings.listen_fd is not None:
        clients = inherited_socket(settings.listen_fd)
    else:
        clients = bound_socket(settings.host, settings.port, "INFERBUS_ROUTER_PORT")
    try:
        admin = bound_socket(settings.http_host, settings.http_port, "INFERBUS_ROUTER_HTTP_PORT")
        debug = _debug_socket(settings.debug_port, admin)
    except ProblemsError:
        clients.close()
        raise
    return _Sockets(clients, admin, debug)


def _debug_socket(port: int | None, admin: socket.socket) -> socket.socket | None:
    try:
        return (
            None if port is None else bound_socket("127.0.0.1", port, "INFERBUS_ROUTER_DEBUG_PORT")
        )
    except ProblemsError:
        admin.close()
        raise


def _open_access_log(settings: RouterSettings) -> LogWriter | None:
    if settings.access_log == "off":
        return None
    path = settings.access_log_path
    try:
        descriptor = open_log(path)
    except OSError as error:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_SETTING,
                message=f"the access log can't be opened: {error.strerror}",
                field="INFERBUS_ROUTER_ACCESS_LOG_PATH",
                value=str(path),
                remedy="set it to a file that the router may write",
            )
        ) from None
    return LogWriter(_LINE_FORMATS[settings.access_log], descriptor, settings.access_log_flush_ms)


def _no_log(record: RequestRecord) -> None:
    del record
