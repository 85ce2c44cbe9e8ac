"""Whether endpoints take another request now, or would only let it wait in a queue of their own.

A request that waits in the router can still be overtaken by one whose turn comes first, in an
engine it can't; so as few as possible should wait there, and no engine should idle. Invariant: an
endpoint with fewer requests than `least` always takes one, with `most` never.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from inferbus_router.policy_load import EndpointLoad


@dataclass(frozen=True, slots=True)
class Room:
    """How much is sent to one endpoint at a time."""

    least: int
    """Requests it gets whatever it has to do."""
    most: int
    """Requests it gets at most."""
    backlog_ms: int = 0
    """Between these it gets more while it is predicted to begin with another prompt that soon."""

    def is_at(self, endpoint: EndpointLoad, now_ms: int) -> bool:
        """Whether an endpoint takes another request."""
        running = endpoint.in_flight
        if running < self.least:
            return True
        if running >= self.most:
            return False
        return endpoint.predicted_wait_ms(now_ms, endpoint.ms_per_token) < self.backlog_ms

    def is_among(self, endpoints: Iterable[EndpointLoad], now_ms: int) -> bool:
        """Whether one of them does."""
        return any(self.is_at(endpoint, now_ms) for endpoint in endpoints)
