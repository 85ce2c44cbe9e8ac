"""The bookkeeping of one request, while it is served and when it ends.

Invariant: whatever an account raises or reserves it lowers or settles again by the time the request
has ended, however it ended; every request is counted once.
"""

from collections.abc import Callable

from inferbus_router.body import RequestBody
from inferbus_router.demand import DemandCell
from inferbus_router.errors import ErrorType, RequestError, rate_limited
from inferbus_router.ledger import Ledger
from inferbus_router.plan import Plan
from inferbus_router.policy_limits import Need, Refused, Reservation, RouteLimiter
from inferbus_router.record import CLIENT_CLOSED, RequestRecord
from inferbus_router.request import Request
from inferbus_router.shared_limits import Answer, SharedReservation
from inferbus_router.table import Route
from inferbus_router.traffic import path_label
from inferbus_router.usage import UsageReader


class Account(RequestRecord):
    """What one request has open in the ledger, beside what is known about it."""

    _plan: Plan | None = None
    _reservation: Reservation | SharedReservation | None = None
    _estimate = 0
    """Prompt tokens before scaling."""
    _waits = False
    _runs = False

    def __init__(self, ledger: Ledger, request: Request, arrived_ms: int) -> None:
        RequestRecord.__init__(self, request, arrived_ms)
        self._ledger = ledger
        ledger.traffic.arrived += 1

    def reserve(
        self,
        route: Route,
        body: RequestBody,
        now_ms: int,
        on_answer: Callable[[Answer], None],
    ) -> bool:
        """Pay for it in advance; raises `RequestError` 429 where the route's limit is used up.

        False where another has to be asked: then `on_answer` is called later, once.
        """
        assert self.request
        charge = self._ledger.charge(route, self.model)
        self.destination = charge.destination
        limiter = charge.limiter
        if limiter is None:
            return True
        tokens = charge.scale.scaled(body.prompt_tokens)
        need = Need(self.model, self.request.principal, tokens, body.max_output_tokens)
        if isinstance(limiter, RouteLimiter):
            self.take(limiter.reserve(need, now_ms))
            return True
        answer = limiter.reserve(need, now_ms, on_answer)
        if answer is None:
            return False
        self.take(answer)
        return True

    def take(self, answer: Answer) -> None:
        """A limit was asked; raises `RequestError` 429 where it is used up.

        For a request that is over by now it gives back what was reserved.
        """
        if isinstance(answer, Refused):
            if self.ended_ms:
                return
            self._count_refusal(answer)
            side = (
                ErrorType.INPUT_RATE_LIMIT
                if answer.side == "input"
                else ErrorType.OUTPUT_RATE_LIMIT
            )
            raise rate_limited(side, answer.limit, answer.unit_seconds, answer.wait_ms)
        if self.ended_ms:
            answer.settle(0, 0)
        else:
            self._reservation = answer

    def _count_refusal(self, refused: Refused) -> None:
        assert self.request
        limited = self._ledger.traffic.model(self.model).limited
        key = (f"{refused.side}_tokens", path_label(self.request.head.path))
        limited[key] = limited.get(key, 0) + 1

    def waits_for(self, plan: Plan, prompt_tokens: int, now_ms: int) -> None:
        """It is to be served by this plan, once there is a replica."""
        if self._plan is None:
            self._arrive(plan, prompt_tokens, now_ms)
        else:
            self._plan, self.destination = plan, plan.destination
        self._waits = True
        if plan.cell is not None:
            plan.cell.queued += 1

    def stops_waiting(self, now_ms: int) -> None:
        """It is served, or given up."""
        if self._waits and self._plan is not None and self._plan.cell is not None:
            self._ledger.demand.advance(now_ms)
            self._plan.cell.queued -= 1
        self._waits = False

    def runs_by(self, plan: Plan, prompt_tokens: int, now_ms: int) -> None:
        """It is served by this plan, now; `prompt_tokens` is the unscaled estimate."""
        if self._plan is None:
            self._arrive(plan, prompt_tokens, now_ms)
        else:
            if self._runs:
                self._leave(self._plan, now_ms)
            self._plan, self.destination = plan, plan.destination
        self._runs = True
        plan.traffic.active += 1
        if plan.cell is not None:
            plan.cell.in_flight += 1

    def _leave(self, plan: Plan, now_ms: int) -> None:
        """Another plan serves it: this one's target failed."""
        plan.traffic.active -= 1
        if plan.cell is not None:
            self._ledger.demand.advance(now_ms)
            plan.cell.in_flight -= 1

    def _arrive(self, plan: Plan, prompt_tokens: int, now_ms: int) -> None:
        self._plan = plan
        self.destination = plan.destination
        self._estimate = prompt_tokens
        self.prompt_tokens = self.input_tokens = tokens = plan.scale.scaled(prompt_tokens)
        plan.model_traffic.active += 1
        cell = plan.cell
        if cell is not None:
            demand = self._ledger.demand
            if now_ms >= demand.ends_at_ms:
                demand.advance(now_ms)
            cell.arrivals += 1
            cell.prompt_tokens += tokens

    def first_byte(self, status: int, is_stream: bool, now_ms: int) -> None:
        """The response begins, and goes to the client; only in a stream it is the first token's."""
        self.status = status
        self.first_byte_ms = self.last_byte_ms = now_ms
        if not is_stream or self._plan is None:
            return
        index = self._plan.traffic.ttft.observe(now_ms - self.arrived_ms)
        if self._plan.cell is not None:
            self._ledger.demand.advance(now_ms)
            self._plan.cell.ttft_buckets[index] += 1

    def events(self, count: int, now_ms: int) -> None:
        """That many more events of its stream go to the client."""
        if self.output_tokens and self._plan is not None:
            gap_ms = now_ms - self.last_byte_ms
            self._plan.traffic.inter_token.observe(gap_ms // count, count)
        self.output_tokens += count
        self.last_byte_ms = now_ms

    def used(self, usage: UsageReader) -> None:
        """What the engine counted."""
        prompt_tokens = usage.prompt_tokens
        if prompt_tokens and self._plan is not None:
            self.input_tokens = prompt_tokens
            self._plan.scale.learn(self._estimate, prompt_tokens)
        if usage.output_tokens is not None:
            self.output_tokens = usage.output_tokens
        self.cached_tokens = usage.cached_tokens

    # How it goes wrong.

    def abandoned_by_client(self) -> None:
        """Nobody waits for the rest of the response any more."""
        self.client_left = True
        self.error_type = ErrorType.RESPONSE_FORWARDING
        self.error_message = "the client closed the connection"
        self.status = self.status or CLIENT_CLOSED

    def refused_by_endpoint(self) -> None:
        """The client was passed on an error status."""
        self.error_type = ErrorType.UPSTREAM_RESPONSE
        self.error_message = "the endpoint refused the request"

    def breaks_off(self, error: RequestError) -> None:
        """The response can't be ended as it should."""
        self.broke_off = True
        self.error_type = error.error_type
        self.error_message = error.message

    # The end.

    def ended(self, now_ms: int) -> None:
        """It is over: the record says how."""
        self.ended_ms = now_ms
        ledger = self._ledger
        ledger.traffic.ended += 1
        plan = self._plan
        if plan is None:
            self._count_unplanned(ledger)
        else:
            duration_index = self._count(plan)
            if plan.cell is not None:
                if now_ms >= ledger.demand.ends_at_ms:
                    ledger.demand.advance(now_ms)
                self._close_demand(plan.cell, duration_index)
        if self._reservation is not None:
            self._settle(self._reservation)
        ledger.log(self)

    def _count_unplanned(self, ledger: Ledger) -> None:
        assert self.request
        path = path_label(self.request.head.path)
        outcome = ledger.traffic.to(self.destination).outcome(path, self.status, self.error_type)
        outcome.count(self.ended_ms - self.arrived_ms, 0, 0)

    def _count(self, plan: Plan) -> int:
        plan.model_traffic.active -= 1
        if self._runs:
            plan.traffic.active -= 1
        outcome = plan.success
        if self.status != 200 or self.error_type is not None:
            outcome = plan.traffic.outcome(plan.path_label, self.status, self.error_type)
        return outcome.count(
            self.ended_ms - self.arrived_ms,
            self.input_tokens if self.first_byte_ms else 0,
            self.output_tokens,
        )

    def _close_demand(self, cell: DemandCell, duration_index: int) -> None:
        if self._runs:
            cell.in_flight -= 1
        elif self._waits:
            cell.queued -= 1
        if self.broke_off or self.status >= 500:
            cell.errors += 1
        elif not self.client_left:
            cell.completions += 1
            cell.duration_buckets[duration_index] += 1
        cell.output_tokens += self.output_tokens

    def _settle(self, reservation: Reservation | SharedReservation) -> None:
        answered = self.first_byte_ms and self.status < 400
        if answered or (self.client_left and self.attempts):
            reservation.settle(self.input_tokens, self.output_tokens)
        else:
            reservation.settle(0, 0)
