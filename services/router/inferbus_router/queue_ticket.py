"""One request's place among those that wait for their turn, from its arrival to its end.

Invariant: whatever happens to the request, the place is given back once, with what was used.
"""

from collections.abc import Iterator
from typing import Protocol

from inferbus_router.account import Account
from inferbus_router.body import RequestBody
from inferbus_router.endpoint import Endpoint
from inferbus_router.errors import RequestError
from inferbus_router.fleet import Fleet, ServerState
from inferbus_router.gateway_matching import Arrival, match_arrival
from inferbus_router.policy_queue import Applicant, Usage
from inferbus_router.queue_errors import queue_deadline_passed, queue_full
from inferbus_router.queues import Queues
from inferbus_router.request import Request
from inferbus_router.sessions import header_value
from inferbus_router.state import RouterState
from inferbus_router.table import Route, Rule


class TicketOwner(Protocol):
    """The exchange that waits."""

    def turn_came(self, now_ms: int) -> None:
        """It may be served."""
        ...

    def given_up(self, error: RequestError) -> None:
        """It waited too long."""
        ...


class Ticket:
    """A `QueuedRequest`."""

    _queues: Queues | None = None

    def __init__(
        self,
        router: RouterState,
        request: Request,
        body: RequestBody,
        account: Account,
        arrival: Arrival,
        owner: TicketOwner,
    ) -> None:
        self._router = router
        self._request = request
        self._body = body
        self._account = account
        self._arrival = arrival
        self._owner = owner

    def join(self, queues: Queues, route: Route, rule: Rule, now_ms: int) -> bool:
        """Stand in line; True where its turn is now. Raises `RequestError` 503 without space."""
        router, body, account = self._router, self._body, self._account
        if not queues.has_space(len(body.raw)):
            raise queue_full(body.model, router.settings.retry_after_seconds)
        header = queues.rules.session_header
        applicant = Applicant(
            principal=self._request.principal,
            session=header_value(self._request, header) if header else "",
            prompt_tokens=router.ledger.scale(body.model).scaled(body.prompt_tokens),
            max_output_tokens=body.max_output_tokens,
            body_bytes=len(body.raw),
        )
        self._queues = queues
        if queues.join(self, body.model, applicant, now_ms):
            return True
        state = router.fleet.to_wait_for(rule)
        if state is not None:
            plan = router.plans.find(route, state, body.model, self._request.head.path)
            account.waits_for(plan, body.prompt_tokens, now_ms)
        return False

    def give_back(self, now_ms: int) -> None:
        """The request has ended: the account says how."""
        queues, self._queues = self._queues, None
        if queues is not None:
            queues.leave(self, usage_of(self._account), now_ms)

    # What its line asks and says.

    def endpoints(self) -> Iterator[Endpoint] | None:
        """See `QueuedRequest`: None also where no route serves it any more, nothing is ready, or a
        provider outside may serve it, which takes what it gets.
        """
        router = self._router
        found = match_arrival(router.table, self._body.model, self._request, self._arrival)
        if found is None or not _waits_for_room(router.fleet, found[1]):
            return None
        return _ready_endpoints(router.fleet, found[1])

    def turn_came(self) -> None:
        """See `QueuedRequest`."""
        now_ms = self._router.now_ms()
        self._account.stops_waiting(now_ms)
        self._owner.turn_came(now_ms)

    def turn_missed(self, waited_ms: int) -> None:
        """See `QueuedRequest`."""
        retry_after = self._router.settings.retry_after_seconds
        self._owner.given_up(queue_deadline_passed(waited_ms / 1000, retry_after))


def usage_of(account: Account) -> Usage:
    """What a request that has ended took of the service.

    One whose client left took its prompt; one that no engine answered took nothing.
    """
    answered = bool(account.first_byte_ms) and account.status < 400
    if not account.attempts or not (answered or account.client_left):
        return Usage()
    return Usage(
        input_tokens=account.input_tokens,
        output_tokens=account.output_tokens,
        completed=answered and not account.client_left and not account.broke_off,
    )


def _waits_for_room(fleet: Fleet[Endpoint], rule: Rule) -> bool:
    if any(state.server.provider is not None for state in _targets(fleet, rule)):
        return False
    return next(_ready_endpoints(fleet, rule), None) is not None


def _ready_endpoints(fleet: Fleet[Endpoint], rule: Rule) -> Iterator[Endpoint]:
    for state in _targets(fleet, rule):
        yield from state.candidates


def _targets(fleet: Fleet[Endpoint], rule: Rule) -> Iterator[ServerState[Endpoint]]:
    for key, weight in zip(rule.servers, rule.weights, strict=True):
        state = fleet.server(key) if weight else None
        if state is not None:
            yield state
