"""Which instances of a service are there.

Every instance renews an entry in a bucket; one that hasn't for `MEMBER_TTL_SECONDS` has left.
Membership only spreads load: two instances that disagree for a moment do work twice, and
deterministic ids and preconditions make that harmless.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Callable, Iterable

from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.subjects import escape, unescape
from inferbus_contracts.topology import MEMBER_TTL_SECONDS, MEMBERS_BUCKET
from inferbus_shared.bus.assignment import assign
from inferbus_shared.bus.bucket import Entry, as_json
from inferbus_shared.bus.bus import Bus

log = logging.getLogger("inferbus.bus")

RENEW_SECONDS = MEMBER_TTL_SECONDS / 3


class Membership:
    """The living instances of this service, this one always included."""

    def __init__(self, bus: Bus, instance: str) -> None:
        self._bucket = bus.bucket(MEMBERS_BUCKET)
        self._follower = self._bucket.follower(f"{escape(bus.service.value)}.*")
        self._own = instance
        self._key = f"{escape(bus.service.value)}.{escape(instance)}"
        self._joined = time.time_ns()
        self._others: dict[str, tuple[int, float]] = {}
        self._members: tuple[str, ...] = (instance,)
        self._listeners: list[Callable[[], None]] = []

    @property
    def members(self) -> tuple[str, ...]:
        """Instance names, oldest first."""
        return self._members

    @property
    def is_active(self) -> bool:
        """Whether this is the oldest instance: the one that works where one is enough."""
        return self._members[0] == self._own

    def owned(self, keys: Iterable[str]) -> frozenset[str]:
        """The keys that this instance is to work on."""
        owners = assign(keys, self._members)
        return frozenset(key for key, owner in owners.items() if owner == self._own)

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call back whenever an instance came or went."""
        self._listeners.append(callback)

    async def ready(self) -> None:
        """Wait until the other instances are known."""
        await self._follower.caught_up()

    async def run(self) -> None:
        """Renew the own entry and notice the others until cancelled; then leave at once.

        Raises `ProblemsError` when the others can't be seen, for whoever sees nobody takes all.
        """
        watching = asyncio.ensure_future(self._watch())
        try:
            while not watching.done():
                await self._renew({"joined": self._joined})
                await asyncio.wait([watching], timeout=RENEW_SECONDS)
                self._refresh()
            await watching
        finally:
            watching.cancel()
            with contextlib.suppress(Exception):  # the others notice by the entry's age
                await self._renew({"left": True})

    async def _watch(self) -> None:
        async for entry in self._bucket.entries(self._follower):
            self._notice(entry)

    def _notice(self, entry: Entry) -> None:
        name = unescape(entry.key.rpartition(".")[2])
        if entry.key == self._key:
            return
        state = json.loads(entry.value) if entry.value else {"left": True}
        if state.get("left"):
            self._others.pop(name, None)
        else:
            self._others[name] = (int(state["joined"]), time.monotonic())
        self._refresh()

    def _refresh(self) -> None:
        oldest = time.monotonic() - MEMBER_TTL_SECONDS
        living = {
            name: (joined, seen) for name, (joined, seen) in self._others.items() if seen > oldest
        }
        self._others = living
        ages = {name: joined for name, (joined, _) in living.items()} | {self._own: self._joined}
        members = tuple(sorted(ages, key=lambda name: (ages[name], name)))
        if members != self._members:
            self._members = members
            log.info("members changed", extra={"members": ",".join(members)})
            for listener in self._listeners:
                listener()

    async def _renew(self, state: dict[str, object]) -> None:
        try:
            await self._bucket.put(self._key, as_json(state))
        except ProblemsError as error:
            log.warning("membership not renewed", extra={"problem": str(error)})
