"""What routers tell each other about endpoints, so that each counts the prompts of all.

A router tells what changed at its endpoints since it told last, and from time to time everything.
Whoever hears it adds up what the others told. Invariant: a router never counts what it told itself,
and nothing counts of a router that fell silent.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from inferbus_router.policy_load import Backlog, EndpointLoad, SentPrompts

TELL_EVERY_MS = 50
"""Real time. At most that often, and only where something changed."""
TELL_ALL_EVERY_MS = 1_000
"""Everything that isn't empty, for those that come later, and in case something got lost."""
SILENT_AFTER_MS = 3_500
"""A router that tells nothing for so long is gone."""
MOST_BLOCKS_TOLD = 16_384
"""At once; beyond, the oldest prompts are left out, and cost a prefix that isn't found."""
MOST_ENDPOINTS_TOLD = 2_000
"""In one message."""

T = TypeVar("T")

NOTHING = Backlog(0, 0, 0, 0, 0)
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


class Teller:
    """Decides what this router tells, and when."""

    def __init__(self, router: str) -> None:
        self.prompts: SentPrompts = []
        """Sent since it told last; endpoints append to it."""
        self._router = router
        self._told: dict[EndpointName, Backlog] = {}
        self._whole_at_ms = 0

    def news(
        self, loads: Iterable[EndpointLoad], now_ms: int, is_alone: bool = False
    ) -> list[News]:
        """What there is to tell, in pieces that fit into a message; empty where nothing changed.

        Where nobody else was heard of (`is_alone`), it tells only from time to time, in case
        somebody comes.
        """
        is_whole = now_ms >= self._whole_at_ms + TELL_ALL_EVERY_MS
        if is_alone and not is_whole:
            return []
        backlogs = {load.name: load.own_backlog() for load in loads if load.in_flight}
        changed = {name: each for name, each in backlogs.items() if self._told.get(name) != each}
        for name in self._told.keys() - backlogs.keys():
            changed[name] = NOTHING
        if not changed and not self.prompts and not (is_whole and backlogs):
            return []
        if is_whole:
            self._whole_at_ms = now_ms
        self._told = backlogs
        told = list((backlogs | changed if is_whole else changed).items())
        pieces = [dict(part) for part in _parts(told, MOST_ENDPOINTS_TOLD)] or [{}]
        prompts = self._take_prompts()
        return [
            News(
                self._router, now_ms, is_whole and len(pieces) == 1, piece, () if index else prompts
            )
            for index, piece in enumerate(pieces)
        ]

    def _take_prompts(self) -> list[tuple[EndpointName, Sequence[int]]]:
        """The newest, as many as may be told."""
        taken: list[tuple[EndpointName, Sequence[int]]] = []
        blocks_left = MOST_BLOCKS_TOLD
        for load, blocks in reversed(self.prompts):
            blocks_left -= len(blocks)
            if blocks_left < 0:
                break
            taken.append((load.name, blocks))
        self.prompts.clear()
        return taken[::-1]


class Hearer:
    """Adds up what other routers tell."""

    def __init__(self, router: str) -> None:
        """`router` is this one's own name."""
        self._router = router
        self._told: dict[str, dict[EndpointName, Backlog]] = {}
        self._heard_ms: dict[str, int] = {}

    @property
    def is_alone(self) -> bool:
        """No other router is heard of."""
        return not self._heard_ms

    def heard(self, news: News, loads: Mapping[EndpointName, EndpointLoad], now_ms: int) -> None:
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

    def forget_silent(self, loads: Mapping[EndpointName, EndpointLoad], now_ms: int) -> None:
        """Count nothing any more of routers that are gone."""
        for router, heard_ms in list(self._heard_ms.items()):
            if now_ms - heard_ms > SILENT_AFTER_MS:
                del self._heard_ms[router]
                self._add_up(self._told.pop(router), loads)

    def _add_up(
        self, names: Iterable[EndpointName], loads: Mapping[EndpointName, EndpointLoad]
    ) -> None:
        for name in names:
            load = loads.get(name)
            if load is not None:
                told = [each[name] for each in self._told.values() if name in each]
                load.peers = _together(told) if told else None


def _parts(items: list[T], most: int) -> Iterable[list[T]]:
    return (items[start : start + most] for start in range(0, len(items), most))


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
