"""The other targets of a request's rule, for when one has failed it.

A route that splits its traffic names targets that serve the same model equally well: a dead canary
must cost nobody an answer (routing spec, defect 24). Invariant: no target gets a request twice, so
that it falls back at most as often as its rule has other targets.
"""

from typing import Protocol

from inferbus_contracts.keys import ObjectKey
from inferbus_router.attempts import Attempts
from inferbus_router.endpoint import Endpoint
from inferbus_router.fleet import ServerState
from inferbus_router.policy_retry import Failure, may_fall_back
from inferbus_router.state import RouterState
from inferbus_router.table import Route, Rule


class FallingBack(Protocol):
    """A request that can go to another target."""

    def send_to(self, route: Route, state: ServerState[Endpoint], now_ms: int) -> None:
        """Send it there; raises `RequestError`."""
        ...


class Fallback:
    """What is left of a rule with several targets, for one request."""

    def __init__(self, router: RouterState, route: Route, rule: Rule) -> None:
        self._router = router
        self._route = route
        self._rule = rule
        self._tried: tuple[ObjectKey, ...] = ()

    def try_again(
        self, request: FallingBack, attempts: Attempts, failure: Failure, now_ms: int
    ) -> bool:
        """Send it on, to another target once all endpoints of one have failed; False where the
        rules don't allow that, or there is none.
        """
        if not attempts.has_tried_all:
            return attempts.retry(failure, now_ms) or self._send(request, attempts, failure, now_ms)
        return self._send(request, attempts, failure, now_ms) or attempts.retry(failure, now_ms)

    def _send(
        self, request: FallingBack, attempts: Attempts, failure: Failure, now_ms: int
    ) -> bool:
        router, failed = self._router, attempts.server
        if not may_fall_back(failure, failed.retry_attempts):
            return False
        self._tried = (*self._tried, failed.key)
        state = router.fleet.draw_other(self._rule, self._tried, now_ms)
        if state is None or not router.retry_budget.spend(router.ledger.traffic.arrived):
            return False
        attempts.failed(now_ms)
        request.send_to(self._route, state, now_ms)
        return True
