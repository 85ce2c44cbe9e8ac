"""The way of one request to a pair of endpoints: prefill computes the prompt, decode the answer.

To its exchange it is what `Attempts` is. The exchange hears decode's response as if there were
nothing else, and prefill's only where that is an answer for the client. Invariant: nothing is sent
again once a byte of a response went to the client; when an attempt is over, so are both of its
legs; a verdict is given only on an endpoint that had the request.
"""

from functools import partial
from random import getrandbits

from inferbus_router.attempts import Attempts
from inferbus_router.endpoint import Endpoint
from inferbus_router.errors import no_ready_pair
from inferbus_router.fleet import ServerState
from inferbus_router.json_members import JsonMembers
from inferbus_router.leg import Leg
from inferbus_router.pairs import Pair
from inferbus_router.policy_ask import Ask
from inferbus_router.policy_connectors import (
    MOST_TRANSFER_BYTES,
    Bodies,
    Disaggregation,
    Room,
    bodies_of,
    transfer_in,
    with_transfer,
)
from inferbus_router.policy_retry import Failure
from inferbus_router.relay import ResponseHead
from inferbus_router.request import Request
from inferbus_router.traffic import Phase
from inferbus_router.upstream_request import upstream_request

_GENERATING = frozenset(
    {"/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"}
)
"""Where there is something to decode."""
_NO_STATUS = 500
"""The metrics' status of a phase that ended without a response (routing spec 6.6)."""
_ROOM_BITS = 63
_NOTHING_GENERATED = Failure.CONNECT
"""Whatever failed of a prefill, the request is as good as never sent."""


def way_of(state: ServerState[Endpoint], request: Request, prompt_tokens: int) -> type[Attempts]:
    """How a request for a model server with pairs is served: by a pair, or by a decode endpoint
    alone where its prompt is short or nothing is generated.
    """
    split = state.server.disaggregation
    if split is None or request.head.path not in _GENERATING or request.head.has_form:
        return Attempts
    if prompt_tokens < split.prefill_min_tokens and split.connector.decode_can_be_alone:
        return Attempts
    return PrefillDecode


class PrefillDecode(Attempts):
    """The attempts of one request, each with a pair; it receives prefill's responses itself."""

    _prefill: Leg | None = None
    """Of the last attempt, as the following."""
    _decode: Leg | None = None
    _body: JsonMembers | None = None
    """Of all attempts."""
    _bodies: Bodies
    _answer: bytearray
    """What has come of prefill's, where decode needs it."""

    @property
    def _split(self) -> Disaggregation:
        split = self._plan.state.server.disaggregation
        assert split
        return split

    def start(self, now_ms: int, may_reuse: bool = True) -> None:
        """Send the request to a pair; raises `RequestError` where the server has none."""
        del may_reuse  # where a kept connection was closed, its leg alone is sent again
        pair = self._choose(now_ms)
        account = self._account
        account.pod, account.prefill_pod = pair.decode.pod, pair.prefill.pod
        account.sent_ms = now_ms
        account.attempts += 1
        if self._plan.try_deadlines is not None:
            self._plan.try_deadlines.start(self, now_ms)
        self._answer = bytearray()
        prefill = self._prefill = Leg(pair.prefill, self, self._ask, now_ms)
        computed = Ask(self._ask.model, 0)
        computed.is_stream = self._ask.is_stream
        decode = self._decode = Leg(pair.decode, self._owner, computed, now_ms)
        connector = self._split.connector
        self._body = self._body or JsonMembers(self._payload)
        self._bodies = bodies_of(connector, self._body, self._room(pair))
        self._send(prefill, self._bodies.prefill, now_ms)
        if connector.sends_both_at_once:
            self._send(decode, self._bodies.decode, now_ms)

    def _choose(self, now_ms: int) -> Pair[Endpoint]:
        state = self._plan.state
        assert state.pairs
        chooser = state if self._choice is None else self._choice
        pair = state.pairs.choose(partial(chooser.choose, self._ask), self._tried, now_ms)
        if pair is None:
            raise no_ready_pair(state.server.name, self._router.settings.retry_after_seconds)
        return pair

    def _room(self, pair: Pair[Endpoint]) -> Room | None:
        if not self._split.connector.sends_both_at_once:
            return None
        return Room(getrandbits(_ROOM_BITS), pair.prefill_host, self._split.bootstrap_port)

    def _send(self, leg: Leg, body: bytes, now_ms: int) -> None:
        leg.send(upstream_request(self._request, body, leg.endpoint.host), now_ms)

    # What prefill answers.

    def response_received(self, head: ResponseHead | None, body: bytes, is_complete: bool) -> None:
        """Read the next part of it; where it is a refusal, it is the client's."""
        prefill = self._prefill
        assert prefill
        if not 200 <= prefill.status < 300:
            self._refused(prefill, head, body, is_complete)
            return
        if self._split.connector.needs_answer:
            self._answer += body
            if len(self._answer) > MOST_TRANSFER_BYTES:
                self._useless(prefill, "is too long")
                return
        if is_complete:
            self._prefilled(prefill)

    def response_failed(self, failure: Failure, detail: str) -> None:
        """It never comes, or never ends. That is the end of the attempt, unless decode speaks
        already: then that had what it needs (defect 21).
        """
        del failure  # whatever it was, nothing was generated
        assert self._prefill
        assert self._decode
        if self._decode.status:
            self._fail(self._prefill, self._router.now_ms())
        else:
            self._owner.response_failed(_NOTHING_GENERATED, f"prefill: {detail}")

    def _refused(
        self, prefill: Leg, head: ResponseHead | None, body: bytes, is_complete: bool
    ) -> None:
        assert self._decode
        if self._decode.status:
            self._fail(prefill, self._router.now_ms())
            return
        if head is not None:
            if head.status >= 500 and self.retry(_NOTHING_GENERATED, self._router.now_ms()):
                return
            self._decode.abandoned()
        self._owner.response_received(head, body, is_complete)

    def _useless(self, prefill: Leg, reason: str) -> None:
        prefill.has_failed = True
        self.response_failed(Failure.BROKEN, f"its answer {reason}")

    def _prefilled(self, prefill: Leg) -> None:
        decode, body = self._decode, self._bodies.decode
        assert decode
        assert self._body
        if self._split.connector.needs_answer:
            try:
                body = with_transfer(self._body, transfer_in(bytes(self._answer)))
            except ValueError as error:
                self._useless(prefill, f"is no JSON object: {error}")
                return
        now_ms = self._router.now_ms()
        self._observe(prefill, prefill.status, now_ms)
        prefill.first_token(now_ms)
        prefill.succeeded()
        if not decode.sent_ms:
            self._send(decode, body, now_ms)

    # What the exchange does; both legs hear of their connections themselves.

    def first_token(self, now_ms: int) -> None:
        """The first event of decode's stream is here."""
        if self._decode is not None:
            self._decode.first_token(now_ms)

    def _legs(self) -> tuple[Leg, ...]:
        return tuple(leg for leg in (self._decode, self._prefill) if leg is not None)

    def pause(self) -> None:
        """Take no more of the response for now."""
        for leg in self._legs():
            leg.pause()

    def resume(self) -> None:
        """Go on taking it."""
        for leg in self._legs():
            leg.resume()

    def succeeded(self, cached_tokens: int | None) -> None:
        """Whose response the client got did what can be asked of it."""
        del cached_tokens  # of decode's own cache, which prompts don't go to
        for leg in self._legs():
            if leg.is_awaited and leg.status:
                self._observe(leg, leg.status, self._router.now_ms())
                leg.succeeded()
        self._end()

    def failed(self, now_ms: int) -> None:
        """It didn't, or decode where both spoke; without a word from either, all that were asked
        didn't.
        """
        asked = [leg for leg in self._legs() if leg.is_awaited]
        spoken = [leg for leg in asked if leg.has_spoken]
        for leg in spoken[:1] or asked:
            self._fail(leg, now_ms)
            self._tried = (*self._tried, leg.endpoint)
        self._end()

    def _passed_over(self) -> None:
        """Whoever is busy is none that failed; the others come first now."""
        busy = [leg.endpoint for leg in self._legs() if leg.is_awaited and leg.has_spoken]
        self._tried = (*self._tried, *busy)
        self._end()

    def _end(self) -> Endpoint | None:
        """What still runs ends without a verdict."""
        super()._end()
        for leg in self._legs():
            leg.abandoned()
        return None

    def _fail(self, leg: Leg, now_ms: int) -> None:
        self._observe(leg, leg.status if leg.status >= 300 else _NO_STATUS, now_ms)
        leg.failed(now_ms)

    def _observe(self, leg: Leg, status: int, now_ms: int) -> None:
        phase = Phase.PREFILL if leg is self._prefill else Phase.DECODE
        plan = self._plan
        plan.traffic.phase(phase, plan.path_label, status).observe(now_ms - leg.sent_ms)
