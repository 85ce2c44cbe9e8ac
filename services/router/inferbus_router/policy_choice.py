"""Which endpoint of a model server a request goes to: the least predicted time to first token.

Predicted from what routers themselves know at once, not from polled gauges (routing spec, defects
13 to 15): the uncached prompt tokens that are sent and not processed, how fast the endpoint
processes them, how much of this prompt it holds, and what runs. Invariant: `choose` never returns
an endpoint outside its candidates, and prefers those that are healthy and not tried yet.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from inferbus_router.policy_ask import Ask
from inferbus_router.policy_load import EndpointLoad

RUNNING_REQUEST_TOKENS = 64
"""What one running request weighs beside waiting prompt tokens: decoding steps that prefill
shares.
"""
ALIKE_TOKENS = 64
"""Predictions that differ by no more than these take are alike: routers that see the same, and
can't see each other's last choice, then take different ones.
"""
MOST_LOOKED_AT = 16
"""In a large fleet the best of this many, and of those that hold the prompt's beginning, is as
good as the best of all, and found in constant time.
"""

LoadT = TypeVar("LoadT", bound=EndpointLoad)


def choose(
    candidates: Sequence[LoadT],
    ask: Ask,
    tried: Collection[LoadT],
    now_ms: int,
    turn: int = 0,
    members: Collection[LoadT] | None = None,
) -> LoadT | None:
    """The endpoint for a request; None only when there are no candidates.

    `turn`, a counter of the caller, says where the search begins: among equals the first found
    wins, so that an idle fleet is used in turn. `members` are the candidates once more, as a set
    where there are many. Endpoints of `tried` (earlier attempts) and ejected ones are taken only
    when no other is left: a fleet that is ejected as a whole is used as if none were, since waiting
    can't help.
    """
    if len(candidates) == 1:
        return candidates[0]
    if len(candidates) <= MOST_LOOKED_AT:
        start = turn % len(candidates) if candidates else 0
        ask.complete(candidates)
        in_turn = (*candidates[start:], *candidates[:start]) if start else candidates
        return best(in_turn, ask, tried, now_ms) or _least_bad(candidates, ask, tried, now_ms)
    looked_at = _some(candidates, turn)
    ask.complete(looked_at)
    among = candidates if members is None else members
    looked_at += [each for each in ask.cached if each in among]
    return (
        best(looked_at, ask, tried, now_ms)
        or best(candidates, ask, tried, now_ms)
        or _least_bad(candidates, ask, tried, now_ms)
    )


def _some(candidates: Sequence[LoadT], turn: int) -> list[LoadT]:
    """A window of them; one turn's begins where that of the turn before ended."""
    start = turn * MOST_LOOKED_AT % len(candidates)
    some = list(candidates[start : start + MOST_LOOKED_AT])
    return some + list(candidates[: MOST_LOOKED_AT - len(some)])


def best(loads: Iterable[LoadT], ask: Ask, tried: Collection[LoadT], now_ms: int) -> LoadT | None:
    """The first whose predicted time is as good as the least; None where none is healthy and
    untried.
    """
    found: LoadT | None = None
    good_enough_ms = 0.0
    for load in loads:
        if (tried and load in tried) or (
            load.health.ejected_until_ms and not load.health.admits(now_ms)
        ):
            continue
        predicted_ms = predicted_ttft_ms(load, ask, now_ms)
        if found is None or predicted_ms < good_enough_ms:
            found = load
            alike_ms = ALIKE_TOKENS * load.fleet_speed.ms_per_token * load.slowness.factor
            good_enough_ms = predicted_ms - alike_ms
    return found


def predicted_ttft_ms(load: EndpointLoad, ask: Ask, now_ms: int) -> float:
    """Milliseconds to the first token there."""
    tokens, cached = ask.prompt_tokens, ask.cached
    if cached:
        tokens -= cached.get(load, 0)
        if tokens <= 0:
            tokens = 1
    peers = load.peers
    running = load.in_flight if peers is None else load.in_flight + peers.running
    ms_per_token = load.fleet_speed.ms_per_token * load.slowness.factor
    if not running:
        predicted_ms = tokens * ms_per_token
    else:
        tokens += RUNNING_REQUEST_TOKENS * running
        predicted_ms = tokens * ms_per_token + load.predicted_wait_ms(now_ms, ms_per_token)
    if load.warms_up_until_ms > now_ms:
        predicted_ms *= load.warm_up_factor(now_ms)
    return predicted_ms


def _least_bad(
    candidates: Sequence[LoadT], ask: Ask, tried: Collection[LoadT], now_ms: int
) -> LoadT | None:
    """The best, untried ones first, whatever their health."""
    return min(
        candidates,
        key=lambda load: (load in tried, predicted_ttft_ms(load, ask, now_ms)),
        default=None,
    )
