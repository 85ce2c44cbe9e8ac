"""The router's choice of an endpoint as the routing referee asks for it.

The referee's blocks stand for what the router hashes itself, its seconds for the router's clock.
Invariant: what chooses is the router's own code, told no more than a router sees.
"""

from collections.abc import Sequence
from random import Random
from typing import Protocol

from inferbus_router.policy_ask import Ask
from inferbus_router.policy_choice import choose
from inferbus_router.policy_load import Dispatch, EndpointLoad
from inferbus_router.policy_peers import TELL_EVERY_MS, Hearer, News, Teller
from inferbus_router.policy_prefixes import PrefixIndex
from inferbus_router.policy_speed import FleetSpeed

BLOCK_TOKENS = 512
_LONGEST_PROMPT_TOKENS = 1 << 20
_ENDS = range(BLOCK_TOKENS, _LONGEST_PROMPT_TOKENS, BLOCK_TOKENS)


class RefereeRequest(Protocol):
    """A request as the referee shows it."""

    id: int
    second: float
    input_tokens: int
    blocks: Sequence[int]


class PredictedTtft:
    """One router in front of some endpoints."""

    def __init__(self, endpoints: int, name: str = "router") -> None:
        self._teller = Teller(name)
        self._hearer = Hearer(name)
        self._prefixes: PrefixIndex[EndpointLoad] = PrefixIndex()
        fleet_speed = FleetSpeed()
        self._loads = [EndpointLoad(str(index)) for index in range(endpoints)]
        for load in self._loads:
            load.prefixes, load.fleet_speed = self._prefixes, fleet_speed
        self._by_name = {load.pod: load for load in self._loads}
        self._index = {load: index for index, load in enumerate(self._loads)}
        self._dispatches: dict[int, Dispatch] = {}
        self._turn = 0

    def choose(self, request: RefereeRequest) -> int:
        """The index of the endpoint that the request goes to."""
        now_ms = round(request.second * 1000)
        ask = Ask.of_blocks("m", request.input_tokens, request.blocks, _ENDS)
        ask.look_up(self._prefixes)
        self._turn += 1
        load = choose(self._loads, ask, (), now_ms, self._turn)
        assert load is not None
        self._dispatches[request.id] = load.started(ask, now_ms)
        return self._index[load]

    def first_token(self, index: int, request_id: int, second: float) -> None:
        """A response begins."""
        self._loads[index].first_token(self._dispatches[request_id], round(second * 1000))

    def finished(self, index: int, request_id: int, second: float) -> None:
        """A response ends."""
        del second
        self._loads[index].ended(self._dispatches.pop(request_id))

    def tells_others(self) -> None:
        """It is one of several."""
        for load in self._loads:
            load.sent_prompts = self._teller.prompts

    def news(self, now_ms: int) -> list[News]:
        """What it has to tell the others."""
        return self._teller.news(self._loads, now_ms)

    def heard(self, news: News, now_ms: int) -> None:
        """What another one told."""
        self._hearer.heard(news, self._by_name, now_ms)


class SharedPredictedTtft:
    """Several routers in front of the same endpoints; clients use them at random."""

    def __init__(self, endpoints: int, routers: int) -> None:
        self._routers = [PredictedTtft(endpoints, f"router-{i}") for i in range(routers)]
        for router in self._routers:
            router.tells_others()
        self._draw = Random(11)
        self._serving: dict[int, PredictedTtft] = {}
        self._told_ms = 0

    def choose(self, request: RefereeRequest) -> int:
        """The choice of the router that the client uses."""
        self._exchange(round(request.second * 1000))
        router = self._serving[request.id] = self._draw.choice(self._routers)
        return router.choose(request)

    def _exchange(self, now_ms: int) -> None:
        """What was told until now; nothing came between two of the referee's calls."""
        if now_ms - self._told_ms < TELL_EVERY_MS:
            return
        self._told_ms = now_ms
        told = [news for router in self._routers for news in router.news(now_ms)]
        for news in told:
            for router in self._routers:
                router.heard(news, now_ms)

    def first_token(self, index: int, request_id: int, second: float) -> None:
        """A response begins: its router sees it."""
        self._exchange(round(second * 1000))
        self._serving[request_id].first_token(index, request_id, second)

    def finished(self, index: int, request_id: int, second: float) -> None:
        """A response ends."""
        self._exchange(round(second * 1000))
        self._serving.pop(request_id).finished(index, request_id, second)
