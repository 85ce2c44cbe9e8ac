"""The second half of an exchange: from the first byte of a response to the end of the request.

Passed on, tried again where that is safe, given up when a deadline passes, stopped when the client
leaves. Invariant: whatever happens, it ends exactly once; by then its connection to the engine is
back in the pool or closed, nothing counts against it any more, and its account is closed.
"""

from inferbus_router.account import Account
from inferbus_router.attempts import Attempts
from inferbus_router.errors import (
    RequestError,
    stream_broken,
)
from inferbus_router.fallback import Fallback, FallingBack
from inferbus_router.policy_retry import RETRYABLE_STATUSES, TOO_MANY_REQUESTS, Failure
from inferbus_router.queue_errors import hold_deadline_passed
from inferbus_router.queue_ticket import Ticket
from inferbus_router.relay import Relay, ResponseHead
from inferbus_router.request import Request
from inferbus_router.server_protocol import ServerProtocol
from inferbus_router.state import RouterState
from inferbus_router.timekeeper import Deadlines
from inferbus_router.unserved import too_slow, unanswered
from inferbus_router.waiting import TimedRequest


class Answering(FallingBack, TimedRequest):
    """One request that is being answered."""

    _attempts: Attempts | None = None
    _relay: Relay | None = None
    _fallback: Fallback | None = None
    """None: the rule has one target."""
    _asks_for_usage = False
    """The router itself asked the engine for usage in the stream."""
    _deadlines: Deadlines[TimedRequest] | None = None
    """What is being waited for."""
    _ticket: Ticket | None = None
    """Its place among those that wait for their turn, where there is a queue."""
    _keep_alive = False
    _ended = False

    def __init__(self, router: RouterState, client: ServerProtocol, request: Request) -> None:
        self._router = router
        self._client = client
        self._request = request
        self._account = Account(router.ledger, request, router.now_ms())

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
            if head.status >= TOO_MANY_REQUESTS and self._is_tried_again(head, now_ms):
                return
            out = self._begin_response(head, now_ms)
        relay = self._relay
        assert relay
        if body:
            out += relay.body(body)
            if relay.is_event_stream and (events := relay.take_events()):
                if not self._account.output_tokens:
                    attempts.first_token(now_ms)
                self._account.events(events, now_ms)
        if is_complete:
            self._client.write(out + relay.end())
            self._complete(attempts, now_ms)
        else:
            if out:
                self._client.write(out)
            self._count(self._router.idle_deadlines, now_ms)

    def _is_tried_again(self, head: ResponseHead, now_ms: int) -> bool:
        """Whether another endpoint may answer instead."""
        if head.status in RETRYABLE_STATUSES:
            return self._try_again(Failure.STATUS, now_ms)
        assert self._attempts
        return head.status == TOO_MANY_REQUESTS and self._attempts.retry_as_asked(
            head.forwarded, now_ms
        )

    def _try_again(self, failure: Failure, now_ms: int) -> bool:
        assert self._attempts
        if self._fallback is None:
            return self._attempts.retry(failure, now_ms)
        return self._fallback.try_again(self, self._attempts, failure, now_ms)

    def _begin_response(self, head: ResponseHead, now_ms: int) -> bytes:
        assert self._attempts
        self._attempts.first_byte()
        request = self._request
        relay = self._relay = Relay(head, request.head.minor_version, self._asks_for_usage)
        self._keep_alive = self._client.keeps_alive(request) and not relay.must_close
        self._account.first_byte(head.status, relay.is_event_stream, now_ms)
        out = relay.head(request.request_id, self._keep_alive)
        cors = self._router.cors
        return out if cors is None else cors.replace(out, request.head)

    def response_failed(self, failure: Failure, detail: str) -> None:
        """The endpoint can't be reached, or broke the response off."""
        assert self._attempts
        self._attempts.released()
        now_ms = self._router.now_ms()
        if self._relay is not None:
            self._break_off(self._relay, detail, now_ms)
        elif not self._try_again(failure, now_ms):
            self._attempts.failed(now_ms)
            self.given_up(unanswered(failure, detail, self._attempts.server))

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
        relay = self._relay
        if relay is None or not relay.is_finished:
            self._account.abandoned_by_client()
        self._end(self._router.now_ms())

    def deadline_passed(self) -> None:
        """What was waited for didn't come in time."""
        deadlines, self._deadlines = self._deadlines, None
        assert deadlines
        now_ms = self._router.now_ms()
        seconds = deadlines.limit_ms / 1000
        if self._attempts is None:
            retry_after = self._router.settings.retry_after_seconds
            self.given_up(
                hold_deadline_passed(self._account.destination.backend, seconds, retry_after)
            )
        elif self._relay is None:
            self._attempts.failed(now_ms)
            self.given_up(too_slow(seconds, self._attempts.server))
        else:
            self._break_off(self._relay, f"nothing came for {seconds:g} seconds", now_ms)

    # How it ends.

    def _complete(self, attempts: Attempts, now_ms: int) -> None:
        account = self._account
        if account.status in RETRYABLE_STATUSES:
            attempts.failed(now_ms)
        else:
            usage = self._relay.usage if self._relay is not None else None
            attempts.succeeded(usage.cached_tokens if usage is not None else None)
        if account.status >= 400:
            account.refused_by_endpoint()
        self._end(now_ms)
        self._client.response_ended(self._keep_alive)

    def given_up(self, error: RequestError) -> None:
        """Answer with an error; nothing of a response has been sent."""
        self._account.fail(error)
        self._end(self._router.now_ms())
        self._client.answer(self._request, self._router.page_of(error, self._request.head))

    def _break_off(self, relay: Relay, detail: str, now_ms: int) -> None:
        """The response can't be ended as it should: the client must be able to tell."""
        assert self._attempts
        error = stream_broken(detail)
        self._account.breaks_off(error)
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
            self._account.used(usage)
        if self._ticket is not None:
            self._ticket.give_back(now_ms)
        self._account.ended(now_ms)

    def _count(self, deadlines: Deadlines[TimedRequest], now_ms: int) -> None:
        if self._deadlines is not deadlines:
            if self._deadlines is not None:
                self._deadlines.stop(self)
            self._deadlines = deadlines
        deadlines.start(self, now_ms)
