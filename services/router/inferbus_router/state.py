"""What all requests of one router share while they are served.

The router owns and changes it, exchanges use it. Invariant: `table` and `fleet` always belong
together: both are of the newest parts.
"""

from collections.abc import Callable

from inferbus_contracts.events.route import EndpointEntry
from inferbus_router.access import AccessControl
from inferbus_router.cors import cross_origin
from inferbus_router.credentials import Credentials
from inferbus_router.endpoint import ConnectionSettings, Endpoint
from inferbus_router.errors import RequestError
from inferbus_router.fleet import Fleet
from inferbus_router.http_messages import Page, error_page
from inferbus_router.ledger import Ledger
from inferbus_router.plan import Plans
from inferbus_router.policy_hold import HoldQueue
from inferbus_router.policy_retry import RetryBudget
from inferbus_router.queue_settings import QueueSettings
from inferbus_router.queues import make_queues
from inferbus_router.request import RequestHead
from inferbus_router.scheduler import Scheduler
from inferbus_router.settings import RouterSettings
from inferbus_router.table import RoutingTable
from inferbus_router.timekeeper import Deadlines, Timekeeper
from inferbus_router.tracing import Tracer
from inferbus_router.transport import Transport
from inferbus_router.waiting import TimedRequest, TimedTry


class RouterState:
    """Shared by the exchanges of one router."""

    def __init__(
        self,
        settings: RouterSettings,
        ledger: Ledger,
        now_ms: Callable[[], int],
        rate: float,
        connections: ConnectionSettings,
        access: AccessControl,
        queues: QueueSettings | None = None,
    ) -> None:
        """`now_ms` tells virtual time, `rate` virtual milliseconds per real one."""

        def make_endpoint(entry: EndpointEntry, transport: Transport) -> Endpoint:
            return Endpoint(entry, transport, connections)

        self.settings = settings
        self.on_held: Callable[[], None] = lambda: None
        """Called when a request begins to wait."""
        self.on_table: Callable[[list[Endpoint]], None] = lambda gone: None
        """Called behind every table, with the endpoints that it doesn't name any more."""
        self.tracer: Tracer | None = None
        """None: nobody traces."""
        self.scheduler: Scheduler | None = None
        """None: endpoints are chosen by the default rule."""
        self.ledger = ledger
        self.access = access
        self.now_ms = now_ms
        self.rate = rate
        self.table = RoutingTable()
        self.fleet = Fleet(make_endpoint)
        self.plans = Plans(ledger, self.first_byte_deadlines, self.try_deadlines)
        self.credentials = Credentials(settings.secrets, settings.credentials_dir)
        """Of external providers."""
        self.retry_budget = RetryBudget()
        self.hold: HoldQueue[TimedRequest] = HoldQueue(
            settings.hold_queue_requests, settings.hold_queue_bytes
        )
        self.cors = cross_origin(settings.cors_origins)
        self._keeper = Timekeeper(now_ms, rate)
        self.queues = make_queues(queues, self._keeper) if queues is not None else None
        """Where requests wait for their turn; None where there is no order but arrival."""
        self._first_byte: dict[int, Deadlines[TimedRequest]] = {}
        self._each_try: dict[int, Deadlines[TimedTry]] = {}
        self.hold_deadlines = self._deadlines(settings.hold_deadline_seconds * 1000)
        self.idle_deadlines = self._deadlines(settings.stream_idle_timeout_seconds * 1000)

    def _deadlines(self, limit_ms: float) -> Deadlines[TimedRequest]:
        return self._keeper.deadlines(round(limit_ms), _deadline_passed)

    def first_byte_deadlines(self, timeout_ms: int | None) -> Deadlines[TimedRequest]:
        """For the first byte of a response; `timeout_ms` is the model server's own limit."""
        limit_ms = timeout_ms or round(self.settings.first_byte_timeout_seconds * 1000)
        deadlines = self._first_byte.get(limit_ms)
        if deadlines is None:
            deadlines = self._first_byte[limit_ms] = self._deadlines(limit_ms)
        return deadlines

    def try_deadlines(self, timeout_ms: int | None) -> Deadlines[TimedTry] | None:
        """For the first byte of a response to one attempt; None where the model server sets no
        limit for it.
        """
        if timeout_ms is None:
            return None
        deadlines = self._each_try.get(timeout_ms)
        if deadlines is None:
            deadlines = self._keeper.deadlines(timeout_ms, _try_deadline_passed)
            self._each_try[timeout_ms] = deadlines
        return deadlines

    def page_of(self, error: RequestError, request: RequestHead) -> Page:
        """The response that tells a client, or a page in its browser, of an error."""
        page = error_page(error)
        return page if self.cors is None else self.cors.permit(page, request)

    def stop(self) -> None:
        """Let go of timers and connections."""
        self._keeper.stop()
        self.access.stop()
        self.ledger.limiters.stop()
        for endpoint in self.fleet.endpoints():
            endpoint.retire()


def _deadline_passed(request: TimedRequest) -> None:
    request.deadline_passed()


def _try_deadline_passed(attempt: TimedTry) -> None:
    attempt.try_deadline_passed()
