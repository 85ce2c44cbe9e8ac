"""Which routers serve what was published, by what they acknowledge.

A router that is a moment late is no news; one that makes no progress while there is something to
fetch is. Invariant: a router stays behind from when it first had something to fetch and nothing
since told that it did; time is virtual, in milliseconds.
"""

from dataclasses import dataclass

from inferbus_contracts.events.route import RouteAcknowledged
from inferbus_contracts.keys import ObjectKey


@dataclass(slots=True)
class _Router:
    revision: int
    table_digest: str
    without_credential: frozenset[ObjectKey]
    behind_since_ms: int | None = None


class Acknowledgements:
    """The last acknowledgement of every router."""

    def __init__(self) -> None:
        self._routers: dict[ObjectKey, _Router] = {}
        self._revision = 0
        self._table_digest = ""

    def take(self, key: ObjectKey, acknowledged: RouteAcknowledged, now_ms: int) -> None:
        """A router serves a revision."""
        lacking = frozenset(ObjectKey.parse(each) for each in acknowledged.without_credential or ())
        router = _Router(acknowledged.revision, acknowledged.table_digest, lacking)
        self._routers[key] = router
        if not self._serves(router):
            router.behind_since_ms = now_ms

    def published(self, revision: int, table_digest: str, now_ms: int) -> None:
        """This is what routers should serve from now on."""
        self._revision, self._table_digest = revision, table_digest
        for router in self._routers.values():
            if self._serves(router):
                router.behind_since_ms = None
            elif router.behind_since_ms is None:
                router.behind_since_ms = now_ms

    def behind(self, now_ms: int, limit_ms: int) -> frozenset[ObjectKey]:
        """Routers that have made no progress for longer than the limit."""
        return frozenset(
            key
            for key, router in self._routers.items()
            if router.behind_since_ms is not None and now_ms - router.behind_since_ms > limit_ms
        )

    def forget(self, routers: frozenset[ObjectKey]) -> None:
        """These are taken for gone."""
        for key in routers:
            del self._routers[key]

    def revision_of(self, router: ObjectKey) -> int:
        """The revision that a known router serves."""
        return self._routers[router].revision

    @property
    def without_credential(self) -> dict[ObjectKey, frozenset[ObjectKey]]:
        """The ExternalModelProviders whose credential a router can't read, by router."""
        return {key: router.without_credential for key, router in self._routers.items()}

    @property
    def routers(self) -> int:
        """How many are known."""
        return len(self._routers)

    @property
    def oldest_revision(self) -> int:
        """The oldest that any router serves; what is published where there is no router."""
        served = (router.revision for router in self._routers.values())
        return min(served, default=self._revision)

    def _serves(self, router: _Router) -> bool:
        """The newest revision with another digest is a table with parts missing."""
        if router.revision != self._revision:
            return router.revision > self._revision
        return router.table_digest == self._table_digest
