"""Which prefill endpoint works with which decode endpoint: those of one group (routing spec 4.1).

Invariant: a pair that is chosen stands in one group, both ready and not draining; where any pair
without a failed or ejected endpoint is left, it isn't one of those.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Generic, NamedTuple, TypeVar

from inferbus_contracts.events.route import EndpointEntry
from inferbus_router.policy_load import EndpointLoad

LoadT = TypeVar("LoadT", bound=EndpointLoad)


class Pair(NamedTuple, Generic[LoadT]):
    """Two endpoints that serve a request together."""

    prefill: LoadT
    decode: LoadT
    prefill_host: str
    """Address of the prefill endpoint."""


class Pairs(Generic[LoadT]):
    """The pairs that the endpoints of a model server form."""

    def __init__(self, endpoints: Iterable[tuple[EndpointEntry, LoadT]]) -> None:
        """`endpoints` are all of the server's, in their order."""
        available = [each for each in endpoints if each[0].ready and not each[0].draining]
        groups: dict[str, list[LoadT]] = {}
        self._hosts: dict[LoadT, str] = {}
        for entry, load in available:
            if entry.role == "prefill":
                groups.setdefault(entry.group, []).append(load)
                self._hosts[load] = entry.address
        self._partners = {
            load: groups[entry.group]
            for entry, load in available
            if entry.role == "decode" and entry.group in groups
        }
        """The prefill endpoints of a decode endpoint's group."""
        self.decodes = tuple(self._partners)
        """Decode endpoints with a partner, in their order."""
        self._turn = 0

    def choose(
        self,
        choose_decode: Callable[[Collection[LoadT], int], LoadT | None],
        tried: Collection[LoadT],
        now_ms: int,
    ) -> Pair[LoadT] | None:
        """The pair for a request; None only where there is none.

        `choose_decode` gives the best of `decodes`, those of its first argument only when no other
        is left. Endpoints of `tried` failed this request. The prefill endpoint is the group's with
        the fewest queued prompt tokens; among equals they take turns.
        """
        self._turn += 1
        decode = choose_decode(tried, now_ms)
        if decode is None:
            return None
        prefill = self._least_queued(decode, tried, now_ms)
        if not _is_fit(prefill, tried, now_ms):
            unfit = (
                each
                for each in self.decodes
                if not any(_is_fit(one, tried, now_ms) for one in self._partners[each])
            )
            decode = choose_decode({*tried, *unfit}, now_ms) or decode
            prefill = self._least_queued(decode, tried, now_ms)
        return Pair(prefill, decode, self._hosts[prefill])

    def _least_queued(self, decode: LoadT, tried: Collection[LoadT], now_ms: int) -> LoadT:
        partners = self._partners[decode]
        first = self._turn % len(partners)
        return min(
            partners[first:] + partners[:first],
            key=lambda load: (not _is_fit(load, tried, now_ms), load.waiting_prompt_tokens),
        )


def _is_fit(load: EndpointLoad, tried: Collection[EndpointLoad], now_ms: int) -> bool:
    return load not in tried and load.health.admits(now_ms)


def pairs_of(endpoints: Iterable[tuple[EndpointEntry, LoadT]]) -> Pairs[LoadT] | None:
    """The pairs; None where no endpoint has a role, so that each serves alone."""
    known = list(endpoints)
    return Pairs(known) if any(entry.role for entry, _ in known) else None
