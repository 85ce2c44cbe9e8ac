"""What routers tell each other about endpoints, so that each counts the prompts of all.

A router tells what changed at its endpoints since it told last, and from time to time everything.
Whoever hears it adds up what the others told. Invariant: a router never counts what it told itself,
and nothing counts of a router that fell silent.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from inferbus_router.policy_load import Backlog, EndpointLoad

TELL_EVERY_MS = 50
"""At most that often, and only where something changed."""
TELL_ALL_EVERY_MS = 1_000
"""Everything that isn't empty, for those that come later, and in case something got lost."""
SILENT_AFTER_MS = 3_500
"""A router that tells nothing for so long is gone."""
MOST_PROMPTS = 256
"""Told at once; beyond, the oldest are left out: they cost a prefix that is not found."""

LoadT = TypeVar("LoadT", bound=EndpointLoad)

EndpointName = str
"""What an endpoint is called among routers."""


@dataclass(frozen=True, slots=True)
class News:
    """What one router tells."""

    router: str
    at_ms: int
    """By its own clock, as are the times in the backlogs."""
    is_whole: bool
    """Endpoints that aren't named are without load."""
    backlogs: Mapping[EndpointName, Backlog]
    prompts: Sequence[tuple[EndpointName, Sequence[int]]]
    """Where prompts were sent, with their blocks."""


class Teller(Generic[LoadT]):
    """Decides what this router tells, and when."""

    def __init__(self, router: str, name_of: Callable[[LoadT], EndpointName]) -> None:
        self.prompts: list[tuple[EndpointLoad, Sequence[int]]] = []
        """Sent since it told last; endpoints append to it."""
        self._router = router
        self._name_of = name_of
        self._told: dict[EndpointName, Backlog] = {}
        self._whole_at_ms = 0

    def news(self, loads: Iterable[LoadT], now_ms: int) -> News | None:
        """What there is to tell; None where nothing changed."""
        backlogs = {self._name_of(load): load.own_backlog() for load in loads if load.in_flight}
        is_whole = now_ms >= self._whole_at_ms + TELL_ALL_EVERY_MS
        changed = {name: each for name, each in backlogs.items() if self._told.get(name) != each}
        for name in self._told.keys() - backlogs.keys():
            changed[name] = NOTHING
        if not changed and not self.prompts and not (is_whole and backlogs):
            return None
        if is_whole:
            self._whole_at_ms = now_ms
        self._told = backlogs
        prompts, self.prompts[:] = self.prompts[-MOST_PROMPTS:], ()
        told = backlogs if is_whole else changed
        named = [(self._name_of(load), blocks) for load, blocks in prompts]  # type: ignore[arg-type]
        return News(self._router, now_ms, is_whole, told, named)


NOTHING = Backlog(0, 0, 0, 0, 0)


class Hearer(Generic[LoadT]):
    """Adds up what other routers tell."""

    def __init__(self, router: str) -> None:
        """`router` is this one's own name."""
        self._router = router
        self._told: dict[str, dict[EndpointName, Backlog]] = {}
        self._heard_ms: dict[str, int] = {}

    def heard(self, news: News, loads: Mapping[EndpointName, LoadT], now_ms: int) -> None:
        """Another router told something; its times are taken over to this one's clock."""
        if news.router == self._router:
            return
        told = self._told.setdefault(news.router, {})
        self._heard_ms[news.router] = now_ms
        gone = told.keys() - news.backlogs.keys() if news.is_whole else ()
        for name in gone:
            del told[name]
        ahead_ms = now_ms - news.at_ms
        for name, backlog in news.backlogs.items():
            if backlog.running:
                told[name] = _shifted(backlog, ahead_ms)
            else:
                told.pop(name, None)
        self._add_up({*gone, *news.backlogs}, loads)
        for name, blocks in news.prompts:
            load = loads.get(name)
            if load is not None and load.prefixes is not None:
                load.prefixes.sent(load, blocks)

    def forget_silent(self, loads: Mapping[EndpointName, LoadT], now_ms: int) -> None:
        """Count nothing any more of routers that are gone."""
        for router, heard_ms in list(self._heard_ms.items()):
            if now_ms - heard_ms > SILENT_AFTER_MS:
                del self._heard_ms[router]
                self._add_up(self._told.pop(router), loads)

    def _add_up(self, names: Iterable[EndpointName], loads: Mapping[EndpointName, LoadT]) -> None:
        for name in names:
            load = loads.get(name)
            if load is not None:
                told = [each[name] for each in self._told.values() if name in each]
                load.peers = _together(told) if told else None


def _shifted(backlog: Backlog, by_ms: int) -> Backlog:
    return backlog._replace(
        first_sent_ms=backlog.first_sent_ms + by_ms, processed_ms=backlog.processed_ms + by_ms
    )


def _together(backlogs: Sequence[Backlog]) -> Backlog:
    """Several routers' backlogs at one endpoint as one."""
    waiting = [each for each in backlogs if each.waiting_tokens]
    first = min(waiting, key=lambda each: each.first_sent_ms, default=NOTHING)
    return Backlog(
        running=sum(each.running for each in backlogs),
        waiting_tokens=sum(each.waiting_tokens for each in waiting),
        first_tokens=first.first_tokens,
        first_sent_ms=first.first_sent_ms,
        processed_ms=max(each.processed_ms for each in backlogs),
    )
