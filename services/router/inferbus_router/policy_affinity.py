"""Sessions stay with the endpoint that served them (session sticky, routing spec 6.3).

A session's first endpoint is the one that scores highest for it (rendezvous hashing, Thaler and
Ravishankar, 1998), so that routers and their workers agree without telling each other. It then
stays bound to it, also when endpoints are added. Invariant: a session is bound to at most one
endpoint, for a time that begins anew with each of its requests; it moves only when that endpoint
can't take the request. How many are bound is bounded: those that were quiet longest are let go.
"""

from collections.abc import Collection, Sequence
from typing import Generic, TypeVar

from xxhash import xxh3_64_intdigest

from inferbus_router.policy_load import EndpointLoad

MOST_BINDINGS = 65_536
"""Per model server and process; some 10 MB."""

LoadT = TypeVar("LoadT", bound=EndpointLoad)


class Bindings(Generic[LoadT]):
    """The sessions of one model server."""

    def __init__(self, ttl_ms: int, most: int = MOST_BINDINGS) -> None:
        """A session without requests is bound for `ttl_ms`; at most `most` are."""
        self.ttl_ms = ttl_ms
        self._most = most
        self._bound: dict[int, tuple[LoadT, int]] = {}
        """(endpoint, until when) by the session's hash, quiet longest first."""

    def __len__(self) -> int:
        return len(self._bound)

    def endpoint(
        self, session: str, candidates: Sequence[LoadT], tried: Collection[LoadT], now_ms: int
    ) -> LoadT | None:
        """The session's endpoint; None where no candidate is both untried and healthy."""
        key = xxh3_64_intdigest(session.encode("utf-8", "surrogatepass"))
        bound = self._bound.pop(key, None)
        endpoint = None
        if bound is not None and bound[1] > now_ms and bound[0] in candidates:
            endpoint = bound[0]
        if endpoint is None or not _takes(endpoint, tried, now_ms):
            able = [each for each in candidates if _takes(each, tried, now_ms)]
            endpoint = max(able, key=lambda each: _score(key, each), default=None)
        if endpoint is not None:
            self._bound[key] = (endpoint, now_ms + self.ttl_ms)
        self._forget(now_ms)
        return endpoint

    def _forget(self, now_ms: int) -> None:
        while self._bound:
            key, (_, until_ms) = next(iter(self._bound.items()))
            if until_ms > now_ms and len(self._bound) <= self._most:
                return
            del self._bound[key]


def _takes(load: EndpointLoad, tried: Collection[EndpointLoad], now_ms: int) -> bool:
    health = load.health
    return load not in tried and (not health.ejected_until_ms or health.admits(now_ms))


def _score(key: int, load: EndpointLoad) -> tuple[int, str]:
    return xxh3_64_intdigest(load.pod.encode(), seed=key), load.pod
