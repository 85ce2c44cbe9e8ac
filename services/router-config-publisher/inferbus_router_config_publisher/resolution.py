"""Conditions: what became of each route and server goes to whoever writes their status.

Invariant: a fact is written only when it says something else than the last one of its key, so that
restarts add nothing; conditions never hold up the table.
"""

from collections.abc import Iterable

from inferbus_contracts.base import EventData
from inferbus_contracts.keys import ObjectKey
from inferbus_router_config_publisher.core import Join
from inferbus_shared.bus.membership import Membership
from inferbus_shared.bus.messages import Received
from inferbus_shared.bus.observer import Observer
from inferbus_shared.worklist import Worklist

CONCURRENCY = 8


class Resolver:
    """Keeps `routes.resolved` equal to what the facts add up to."""

    def __init__(self, join: Join, observer: Observer, membership: Membership) -> None:
        self._join = join
        self._observer = observer
        self._membership = membership
        self._dirty = Worklist[ObjectKey]("conditions")
        self._causes: dict[ObjectKey, Received[EventData]] = {}

    def changed(self, keys: Iterable[ObjectKey], cause: Received[EventData] | None = None) -> None:
        """The conditions of these may have changed; without a cause they are only looked at."""
        for key in keys:
            if cause is not None:
                self._causes[key] = cause
            self._dirty.add(key)

    @property
    def idle(self) -> bool:
        """Whether everything that changed has been looked at."""
        return self._dirty.idle

    async def run(self) -> None:
        """Write facts for ever; the facts at hand must have been folded."""
        await self._observer.ready()
        await self._dirty.run(self._resolve, CONCURRENCY)

    async def _resolve(self, key: ObjectKey) -> None:
        cause = self._causes.get(key)
        resolved = self._join.resolved(key) if self._membership.is_active else None
        if resolved is not None:
            await self._observer.observe(key, resolved.uid, resolved, cause=cause)
        if self._causes.get(key) is cause:
            self._causes.pop(key, None)
