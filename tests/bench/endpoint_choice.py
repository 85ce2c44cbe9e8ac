"""The router's choice of an endpoint as the routing referee asks for it.

The referee's blocks stand for what the router hashes itself, its seconds for the router's clock.
Invariant: what chooses is the router's own code, told no more than a router sees.
"""

from collections.abc import Sequence
from typing import Protocol

from inferbus_router.policy_ask import Ask
from inferbus_router.policy_choice import choose
from inferbus_router.policy_load import Dispatch, EndpointLoad
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

    def __init__(self, endpoints: int) -> None:
        self._prefixes: PrefixIndex[EndpointLoad] = PrefixIndex()
        fleet_speed = FleetSpeed()
        self._loads = [EndpointLoad(str(index), fleet_speed) for index in range(endpoints)]
        for load in self._loads:
            load.prefixes = self._prefixes
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
