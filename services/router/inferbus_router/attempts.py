"""The way of one request to an endpoint: choosing it, connecting, sending, and doing so again.

Invariant: each attempt raises the load of its endpoint when it begins and lowers it by the same
when it is over, once, whichever way it ends; there is at most one attempt at a time.
"""

import asyncio
from random import random
from typing import Protocol

from inferbus_router.account import Account
from inferbus_router.endpoint import Endpoint
from inferbus_router.errors import RequestError, no_ready_endpoint
from inferbus_router.plan import Plan
from inferbus_router.policy_ask import Ask
from inferbus_router.policy_load import Dispatch
from inferbus_router.policy_retry import Failure, read_retry_after_ms, retry_delay_ms
from inferbus_router.request import Request
from inferbus_router.state import RouterState
from inferbus_router.table import Server
from inferbus_router.upstream_protocol import ResponseReceiver, UpstreamProtocol
from inferbus_router.upstream_request import upstream_request


class AttemptOwner(ResponseReceiver, Protocol):
    """The exchange that wants a response."""

    def given_up(self, error: RequestError) -> None:
        """There is no endpoint to try any more."""
        ...


class Attempts:
    """The attempts of one request."""

    _endpoint: Endpoint | None = None
    """Where the running attempt goes."""
    _connection: UpstreamProtocol | None = None
    _dispatch: Dispatch | None = None
    """What it counts there."""
    _tried: tuple[Endpoint, ...] = ()
    _retries = 0
    message: tuple[bytes, ...] | None = None
    """What is written, where it isn't the client's request with another body."""
    _retry_timer: asyncio.TimerHandle | None = None
    _wish: "_Wish | None" = None
    """For a connection that is being made."""

    def __init__(
        self,
        router: RouterState,
        owner: AttemptOwner,
        account: Account,
        request: Request,
        plan: Plan,
        ask: Ask,
        payload: bytes,
    ) -> None:
        self._router = router
        self._owner = owner
        self._account = account
        self._request = request
        self._plan = plan
        self._ask = ask
        self._payload = payload
        scheduler = router.scheduler
        self._choice = None if scheduler is None else scheduler.begin(plan, request.body)
        """By plugins, where any are configured."""

    def start(self, now_ms: int, may_reuse: bool = True) -> None:
        """Send the request to an endpoint; raises `RequestError` where the server has none."""
        state = self._plan.state
        chooser = state if self._choice is None else self._choice
        endpoint = chooser.choose(self._ask, self._tried, now_ms)
        if endpoint is None:
            raise no_ready_endpoint(state.server.name, self._router.settings.retry_after_seconds)
        account = self._account
        account.pod = endpoint.pod
        account.sent_ms = now_ms
        account.attempts += 1
        self._endpoint = endpoint
        self._dispatch = endpoint.started(self._ask, now_ms)
        if self._plan.try_deadlines is not None:
            self._plan.try_deadlines.start(self, now_ms)
        connection = endpoint.idle.take_newest() if may_reuse else None
        if connection is None:
            self._wish = _Wish(self)
            endpoint.connect(self._wish)
        else:
            self.connected(connection)

    # The connection.

    def still_wants(self, wish: "_Wish") -> bool:
        """False once the request is over, or the attempt that asked is."""
        return self._wish is wish

    def connected(self, connection: UpstreamProtocol) -> None:
        """Send the request on it."""
        assert self._endpoint
        self._wish = None
        self._connection = connection
        connection.send(
            self._owner,
            self.message or upstream_request(self._request, self._payload, self._endpoint.host),
        )

    def connect_failed(self, detail: str) -> None:
        """There is no connection to the endpoint."""
        self._wish = None
        self._owner.response_failed(Failure.CONNECT, detail)

    def released(self) -> None:
        """The connection went back to its endpoint, or is gone."""
        self._connection = None

    def pause(self) -> None:
        """Take no more of the response for now."""
        if self._connection is not None:
            self._connection.pause()

    def resume(self) -> None:
        """Go on taking it."""
        if self._connection is not None:
            self._connection.resume()

    # How attempts end.

    def try_deadline_passed(self) -> None:
        """The running attempt has no time left; the request may have."""
        if self._connection is not None:
            self._connection.abandon()
        self._owner.response_failed(Failure.TRY_TIMEOUT, "")

    def first_byte(self) -> None:
        """The response has begun, or never will: the attempt has all the time it needs."""
        if self._plan.try_deadlines is not None:
            self._plan.try_deadlines.stop(self)

    def first_token(self, now_ms: int) -> None:
        """The first event of a stream is here: the prompt is processed."""
        if self._dispatch is not None and self._endpoint is not None:
            self._endpoint.first_token(self._dispatch, now_ms)

    @property
    def server(self) -> Server:
        """Where the attempts go."""
        return self._plan.state.server

    @property
    def has_tried_all(self) -> bool:
        """Every endpoint failed, or is about to: the running attempt counts as failed."""
        return all(
            each is self._endpoint or each in self._tried for each in self._plan.state.candidates
        )

    def retry(self, failure: Failure, now_ms: int, retry_after_ms: int = 0) -> bool:
        """Arrange another attempt where the rules allow one; the running one failed like that.

        `retry_after_ms` is how long the endpoint asked to be left alone; the others weren't asked.
        """
        server = self.server
        wait_ms = retry_after_ms if retry_after_ms and self.has_tried_all else 0
        if server.provider is not None and failure is not Failure.STALE:
            return False
        delay_ms = retry_delay_ms(
            failure,
            self._retries,
            server.retry_attempts,
            server.retry_interval_ms,
            random(),
            wait_ms,
        )
        if delay_ms is None:
            return False
        if failure is Failure.STALE:
            self.abandoned()
            self._start_again(may_reuse=False)
            return True
        if not self._router.retry_budget.spend(self._router.ledger.traffic.arrived):
            return False
        if failure is Failure.BUSY:
            self._passed_over()
        else:
            self.failed(now_ms)
        self._retries += 1
        self._plan.traffic.retries += 1
        if delay_ms:
            seconds = delay_ms / self._router.rate / 1000
            loop = asyncio.get_running_loop()
            self._retry_timer = loop.call_later(seconds, self._start_again)
        else:
            self._start_again()
        return True

    def retry_as_asked(self, header_lines: bytes, now_ms: int) -> bool:
        """The same after a 429 that says when to come back; False where it doesn't."""
        retry_after_ms = read_retry_after_ms(header_lines)
        return retry_after_ms is not None and self.retry(Failure.BUSY, now_ms, retry_after_ms)

    def _start_again(self, may_reuse: bool = True) -> None:
        self._retry_timer = None
        try:
            self.start(self._router.now_ms(), may_reuse)
        except RequestError as error:
            self._owner.given_up(error)

    def succeeded(self, cached_tokens: int | None) -> None:
        """The endpoint did what can be asked of it; `cached_tokens`: those of the prompt that it
        held, where it tells.
        """
        if cached_tokens is not None and self._endpoint is not None and self._dispatch is not None:
            self._endpoint.told_cached(self._dispatch, cached_tokens)
        if (endpoint := self._end()) is not None:
            endpoint.health.succeeded()
            if self._choice is not None and self._account.status < 400:
                self._choice.served(endpoint)

    def failed(self, now_ms: int) -> None:
        """The endpoint didn't."""
        if (endpoint := self._end()) is not None:
            endpoint.health.failed(now_ms)
            endpoint.failed(self._ask)
            self._tried = (*self._tried, endpoint)

    def _passed_over(self) -> None:
        """The endpoint is busy, which is no failure; the others come first now."""
        if (endpoint := self._end()) is not None:
            endpoint.health.abandoned()
            self._tried = (*self._tried, endpoint)

    def abandoned(self) -> None:
        """It ended without a verdict: the client left, or a kept connection was stale."""
        if (endpoint := self._end()) is not None:
            endpoint.health.abandoned()

    def _end(self) -> Endpoint | None:
        """The endpoint of the attempt that was running."""
        if self._retry_timer is not None:
            self._retry_timer.cancel()
            self._retry_timer = None
        endpoint, dispatch = self._endpoint, self._dispatch
        if endpoint is None or dispatch is None:
            return None
        if self._connection is not None:
            self._connection.abandon()
            self._connection = None
        self._wish = None
        self.first_byte()
        endpoint.ended(dispatch)
        self._endpoint = self._dispatch = None
        return endpoint


class _Wish:
    """The wish of one attempt for a connection; a later attempt has another."""

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts

    @property
    def still_wants_connection(self) -> bool:
        """False once the request is over, or the attempt is."""
        return self._attempts.still_wants(self)

    def connected(self, connection: UpstreamProtocol) -> None:
        """Here it is."""
        self._attempts.connected(connection)

    def connect_failed(self, detail: str) -> None:
        """There is none."""
        self._attempts.connect_failed(detail)
