"""One inference request from its arrival to the end of its response.

match → limit → choose → send → relay, with everything that can go wrong on the way: held while the
model starts, sent again where that is safe, given up when a deadline passes, stopped when the
client leaves. Invariant: whatever happens, the exchange ends exactly once; by then its connection
to the engine is back in the pool or closed, nothing counts against it any more, and its account is
closed.
"""

from inferbus_router.account import Account
from inferbus_router.attempts import Attempts
from inferbus_router.body import RequestBody
from inferbus_router.core import match_request
from inferbus_router.endpoint import Endpoint
from inferbus_router.errors import (
    ErrorType,
    RequestError,
    bad_gateway,
    gateway_timeout,
    hold_deadline_passed,
    hold_queue_full,
    model_not_found,
    no_ready_endpoint,
    no_ready_pair,
    server_not_found,
    stream_broken,
)
from inferbus_router.fleet import ServerState
from inferbus_router.http_messages import error_page
from inferbus_router.policy_hold import Waiting
from inferbus_router.policy_retry import RETRYABLE_STATUSES, Failure
from inferbus_router.prefill_decode import way_of
from inferbus_router.record import CLIENT_CLOSED, Destination
from inferbus_router.relay import Relay, ResponseHead
from inferbus_router.request import Request
from inferbus_router.server_protocol import ServerProtocol
from inferbus_router.state import RouterState
from inferbus_router.table import Route, Rule
from inferbus_router.timekeeper import Deadlines
from inferbus_router.upstream_request import read_body
from inferbus_router.waiting import TimedRequest


class Exchange:
    """One request being served."""

    _body: RequestBody
    _attempts: Attempts | None = None
    _relay: Relay | None = None
    _asks_for_usage = False
    """The router itself asked the engine for usage in the stream."""
    _deadlines: Deadlines[TimedRequest] | None = None
    """What is being waited for."""
    _keep_alive = False
    _ended = False

    def __init__(self, router: RouterState, client: ServerProtocol, request: Request) -> None:
        self._router = router
        self._client = client
        self._request = request
        self._account = Account(router.ledger, request, router.now_ms())

    # From arrival to an endpoint.

    def begin(self) -> bool:
        """Start to serve the request; False where it is answered already, with an error."""
        try:
            self._admit(self._account.arrived_ms)
        except RequestError as error:
            self.given_up(error)
        return not self._ended

    def _admit(self, now_ms: int) -> None:
        body = self._body = read_body(self._request)
        self._account.model = body.model
        route, rule = self._match()
        if route.limit is not None:
            self._reserve(route, now_ms)
        state = self._router.fleet.draw(rule)
        if state is None:
            self._hold(route, rule, now_ms)
        else:
            self._send_to(route, state, now_ms)

    def _reserve(self, route: Route, now_ms: int) -> None:
        limiter = self._router.ledger.limiters.of(route)
        body = self._body
        self._account.destination = Destination(body.model, route.name)
        if limiter is not None:
            self._account.reserve(limiter, body.prompt_tokens, body.max_output_tokens, now_ms)

    def _match(self) -> tuple[Route, Rule]:
        model = self._body.model
        found = match_request(self._router.table, model, self._request.head)
        if found is None:
            raise model_not_found(model)
        return found

    def _send_to(self, route: Route, state: ServerState[Endpoint], now_ms: int) -> None:
        router, account, body = self._router, self._account, self._body
        plan = router.plans.find(route, state, body.model, self._request.head.path)
        account.runs_by(plan, body.prompt_tokens, now_ms)
        payload = body.raw
        if body.stream and plan.takes_stream_options and not body.usage_wanted:
            self._asks_for_usage = True
            payload = body.with_changes(plan.renamed, include_usage=True)
        elif plan.renamed is not None:
            payload = body.with_changes(plan.renamed, include_usage=False)
        request = self._request
        way = Attempts if state.pairs is None else way_of(state, request, account.prompt_tokens)
        attempts = way(router, self, account, request, plan, payload)
        self._attempts = attempts
        self._count(plan.first_byte_deadlines, now_ms)
        attempts.start(now_ms)

    # While the model has no replica.

    def _hold(self, route: Route, rule: Rule, now_ms: int) -> None:
        router, body = self._router, self._body
        retry_after = router.settings.retry_after_seconds
        state = router.fleet.to_wait_for(rule)
        if state is None:
            raise self._unserved(rule, retry_after)
        target = state.server.target
        assert target
        plan = router.plans.find(route, state, body.model, self._request.head.path)
        self._account.waits_for(plan, body.prompt_tokens, now_ms)
        if not router.hold.admit(self, Waiting(target, body.model, now_ms, len(body.raw))):
            raise hold_queue_full(state.server.name, retry_after)
        self._count(router.hold_deadlines, now_ms)
        router.on_held()

    def _unserved(self, rule: Rule, retry_after_seconds: int) -> RequestError:
        known = [key for key in rule.servers if self._router.fleet.server(key)]
        key = (known or rule.servers)[0]
        name = f"{key.namespace}/{key.name}"
        state = self._router.fleet.server(key)
        if state is not None and state.pairs is not None:
            return no_ready_pair(name, retry_after_seconds)
        return no_ready_endpoint(name, retry_after_seconds) if known else server_not_found(name)

    def table_changed(self) -> None:
        """It is held, and there may be an endpoint for it now."""
        router = self._router
        try:
            route, rule = self._match()
            state = router.fleet.draw(rule)
            if state is None:
                return
            now_ms = router.now_ms()
            router.hold.leave(self)
            self._account.stops_waiting(now_ms)
            self._send_to(route, state, now_ms)
        except RequestError as error:
            self.given_up(error)

    # The response.

    def response_received(self, head: ResponseHead | None, body: bytes, is_complete: bool) -> None:
        """Pass on the next part of the response, or try again instead."""
        now_ms = self._router.now_ms()
        attempts = self._attempts
        assert attempts
        if is_complete:
            attempts.released()
        out = b""
        if head is not None:
            self._account.upstream_status = head.status
            if head.status in RETRYABLE_STATUSES and attempts.retry(Failure.STATUS, now_ms):
                return
            out = self._begin_response(head, now_ms)
        relay = self._relay
        assert relay
        if body:
            out += relay.body(body)
            if relay.is_event_stream and (events := relay.take_events()):
                self._account.events(events, now_ms)
        if is_complete:
            self._client.write(out + relay.end())
            self._complete(attempts, now_ms)
        else:
            if out:
                self._client.write(out)
            self._count(self._router.idle_deadlines, now_ms)

    def _begin_response(self, head: ResponseHead, now_ms: int) -> bytes:
        assert self._attempts
        self._attempts.first_byte()
        request = self._request
        relay = self._relay = Relay(head, request.head.minor_version, self._asks_for_usage)
        self._keep_alive = self._client.keeps_alive(request) and not relay.must_close
        self._account.first_byte(head.status, relay.is_event_stream, now_ms)
        return relay.head(request.request_id, self._keep_alive)

    def response_failed(self, failure: Failure, detail: str) -> None:
        """The endpoint can't be reached, or broke the response off."""
        assert self._attempts
        self._attempts.released()
        now_ms = self._router.now_ms()
        if self._relay is not None:
            self._break_off(self._relay, detail, now_ms)
        elif not self._attempts.retry(failure, now_ms):
            self._attempts.failed(now_ms)
            self.given_up(bad_gateway(detail))

    # What the client and the clock do.

    def client_paused(self) -> None:
        """Take no more from the engine than the client takes."""
        if self._attempts is not None:
            self._attempts.pause()

    def client_resumed(self) -> None:
        """Go on."""
        if self._attempts is not None:
            self._attempts.resume()

    def client_left(self) -> None:
        """Stop everything: nobody waits for the response any more."""
        account = self._account
        account.client_left = True
        account.error_type = ErrorType.RESPONSE_FORWARDING
        account.error_message = "the client closed the connection"
        if self._relay is None:
            account.status = CLIENT_CLOSED
        self._end(self._router.now_ms())

    def deadline_passed(self) -> None:
        """What was waited for didn't come in time."""
        deadlines, self._deadlines = self._deadlines, None
        assert deadlines
        seconds = deadlines.limit_ms / 1000
        now_ms = self._router.now_ms()
        if self._attempts is None:
            retry_after = self._router.settings.retry_after_seconds
            self.given_up(
                hold_deadline_passed(self._account.destination.backend, seconds, retry_after)
            )
        elif self._relay is None:
            self._attempts.failed(now_ms)
            self.given_up(gateway_timeout(seconds))
        else:
            self._break_off(self._relay, f"nothing came for {seconds:g} seconds", now_ms)

    # How it ends.

    def _complete(self, attempts: Attempts, now_ms: int) -> None:
        account = self._account
        if account.status in RETRYABLE_STATUSES:
            attempts.failed(now_ms)
        else:
            attempts.succeeded()
        if account.status >= 400:
            account.error_type = ErrorType.UPSTREAM_RESPONSE
            account.error_message = "the endpoint refused the request"
        self._end(now_ms)
        self._client.response_ended(self._keep_alive)

    def given_up(self, error: RequestError) -> None:
        """Answer with an error; nothing of a response has been sent."""
        self._account.fail(error)
        self._end(self._router.now_ms())
        self._client.answer(self._request, error_page(error))

    def _break_off(self, relay: Relay, detail: str, now_ms: int) -> None:
        """The response can't be ended as it should: the client must be able to tell."""
        assert self._attempts
        error = stream_broken(detail)
        account = self._account
        account.broke_off = True
        account.error_type = error.error_type
        account.error_message = error.message
        self._attempts.failed(now_ms)
        self._end(now_ms)
        if last_words := relay.failure(error.body()):
            self._client.write(last_words)
            self._client.break_off()
        else:
            self._client.abort()

    def _end(self, now_ms: int) -> None:
        self._ended = True
        if self._deadlines is not None:
            self._deadlines.stop(self)
            self._deadlines = None
        attempts, self._attempts = self._attempts, None
        if attempts is None:
            self._router.hold.leave(self)
        else:
            attempts.abandoned()
        if self._relay is not None and (usage := self._relay.usage) is not None:
            self._account.used(usage.prompt_tokens, usage.output_tokens)
        self._account.ended(now_ms)

    def _count(self, deadlines: Deadlines[TimedRequest], now_ms: int) -> None:
        if self._deadlines is not deadlines:
            if self._deadlines is not None:
                self._deadlines.stop(self)
            self._deadlines = deadlines
        deadlines.start(self, now_ms)
