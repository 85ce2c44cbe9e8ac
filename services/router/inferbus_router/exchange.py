"""One inference request from its arrival to an endpoint.

match → limit → choose → send, or held while the model starts; what comes back is answered with by
the other half (`answering`). Invariant: a request is given to `answering` with everything that it
has to give back again booked in its account and its attempts.
"""

from inferbus_router.access import find_rule
from inferbus_router.answering import Answering
from inferbus_router.attempts import Attempts
from inferbus_router.body import RequestBody
from inferbus_router.endpoint import Endpoint
from inferbus_router.errors import RequestError
from inferbus_router.fallback import Fallback
from inferbus_router.fleet import ServerState
from inferbus_router.policy_ask import Ask
from inferbus_router.policy_hold import Waiting
from inferbus_router.prefill_decode import way_of
from inferbus_router.provider_request import provider_request
from inferbus_router.queue_errors import hold_queue_full
from inferbus_router.queue_ticket import Ticket
from inferbus_router.sessions import session_of
from inferbus_router.shared_limits import Answer
from inferbus_router.table import Route, Rule
from inferbus_router.unserved import unserved
from inferbus_router.upstream_request import read_body


class Exchange(Answering):
    """One request being served."""

    _body: RequestBody

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
        account = self._account
        if route.limit is None or account.reserve(route, body, now_ms, self._limit_answered):
            self._place(route, rule, now_ms)

    def _place(self, route: Route, rule: Rule, now_ms: int) -> None:
        queues = self._router.queues
        if queues is not None:
            self._ticket = Ticket(
                self._router, self._request, self._body, self._account, self._client, self
            )
            if not self._ticket.join(queues, route, rule, now_ms):
                return
        self._serve(route, rule, now_ms)

    def turn_came(self, now_ms: int) -> None:
        """It stood in line."""
        try:
            self._serve(*self._match(), now_ms)
        except RequestError as error:
            self.given_up(error)

    def _serve(self, route: Route, rule: Rule, now_ms: int) -> None:
        state = self._router.fleet.draw(rule, now_ms)
        if state is None:
            self._hold(route, rule, now_ms)
        else:
            self._send(route, rule, state, now_ms)

    def _limit_answered(self, answer: Answer) -> None:
        """Others share the limit, so that it had to be asked."""
        try:
            self._account.take(answer)
            if not self._ended:
                self._place(*self._match(), self._router.now_ms())
        except RequestError as error:
            self.given_up(error)

    def _match(self) -> tuple[Route, Rule]:
        return find_rule(self._router.table, self._body.model, self._request, self._client)

    def _send(self, route: Route, rule: Rule, state: ServerState[Endpoint], now_ms: int) -> None:
        if len(rule.servers) > 1:
            self._fallback = Fallback(self._router, route, rule)
        self.send_to(route, state, now_ms)

    def send_to(self, route: Route, state: ServerState[Endpoint], now_ms: int) -> None:
        """Send it to a target; raises `RequestError`."""
        router, account, body = self._router, self._account, self._body
        plan = router.plans.find(route, state, body.model, self._request.head.path)
        account.runs_by(plan, body.prompt_tokens, now_ms)
        payload = body.raw
        if body.stream and plan.takes_stream_options and not body.usage_wanted:
            self._asks_for_usage = True
            payload = body.with_changes(plan.renamed, include_usage=True)
        elif plan.renamed is not None:
            payload = body.with_changes(plan.renamed, include_usage=False)
        if self._attempts is None:
            self._count(plan.first_byte_deadlines, now_ms)
        ask = Ask(plan.destination.upstream_model, account.prompt_tokens, body)
        ask.is_stream = body.stream
        if (session := state.server.session) is not None:
            ask.session = session_of(self._request, session.sources)
        request = self._request
        way = Attempts if state.pairs is None else way_of(state, request, account.prompt_tokens)
        attempts = way(router, self, account, request, plan, ask, payload)
        self._attempts = attempts
        if (provider := state.server.provider) is not None:
            attempts.message = provider_request(
                provider, router.credentials, self._request, payload
            )
        attempts.start(now_ms)

    # While the model has no replica.

    def _hold(self, route: Route, rule: Rule, now_ms: int) -> None:
        router, body = self._router, self._body
        retry_after = router.settings.retry_after_seconds
        state = router.fleet.to_wait_for(rule)
        if state is None:
            raise unserved(router.fleet, rule, retry_after)
        target = state.server.target
        assert target
        plan = router.plans.find(route, state, body.model, self._request.head.path)
        self._account.waits_for(plan, body.prompt_tokens, now_ms)
        if not router.hold.admit(self, Waiting(target, body.model, now_ms, len(body.raw))):
            raise hold_queue_full(state.server.name, retry_after)
        self._count(router.hold_deadlines, now_ms)
        router.on_held()

    def table_changed(self) -> None:
        """It is held, and there may be an endpoint for it now."""
        router = self._router
        now_ms = router.now_ms()
        try:
            route, rule = self._match()
            state = router.fleet.draw(rule, now_ms)
            if state is None:
                return
            router.hold.leave(self)
            self._account.stops_waiting(now_ms)
            self._send(route, rule, state, now_ms)
        except RequestError as error:
            self.given_up(error)
