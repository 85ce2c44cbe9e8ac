"""Which endpoint of a model server a request goes to: the least predicted time to first token.

Predicted from what this router itself knows at once, not from polled gauges (routing spec, defects
13 to 15): the uncached prompt tokens that are sent and not processed, how fast the endpoint
processes them, how much of this prompt it holds, and what runs. Invariant: `choose` never returns
an endpoint outside its candidates, prefers those that are healthy and not tried yet, and changes
nothing.
"""

from collections.abc import Collection, Sequence
from typing import TypeVar

from inferbus_router.policy_ask import Ask
from inferbus_router.policy_load import RUNNING_REQUEST_TOKENS, EndpointLoad

MOST_LOOKED_AT = 16
"""In a large fleet the best of this many, and of those that hold the prompt's beginning, is as
good as the best of all, and found in constant time.
"""

LoadT = TypeVar("LoadT", bound=EndpointLoad)


def choose(
    candidates: Sequence[LoadT], ask: Ask, tried: Collection[LoadT], now_ms: int, start: int = 0
) -> LoadT | None:
    """The endpoint for a request; None only when there are no candidates.

    `start` is where the search begins, a counter of the caller: among equals the first found wins,
    so that an idle fleet is used in turn. Endpoints of `tried` (earlier attempts) and ejected ones
    are taken only when no other is left: a fleet that is ejected as a whole is used as if none
    were, since waiting can't help.
    """
    count = len(candidates)
    if count == 1:
        return candidates[0]
    best: LoadT | None = None
    best_ms = 0.0
    looked_at = 0
    for offset in range(count):
        load = candidates[(start + offset) % count]
        if load in tried or (load.health.ejected_until_ms and not load.health.admits(now_ms)):
            continue
        predicted_ms = predicted_ttft_ms(load, ask, now_ms)
        if best is None or predicted_ms < best_ms:
            best, best_ms = load, predicted_ms
        looked_at += 1
        if looked_at == MOST_LOOKED_AT:
            break
    return best or _least_bad(candidates, ask, tried, now_ms)


def predicted_ttft_ms(load: EndpointLoad, ask: Ask, now_ms: int) -> float:
    """Milliseconds to the first token there."""
    new_tokens = ask.prompt_tokens - ask.cached.get(load, 0)
    tokens = new_tokens + RUNNING_REQUEST_TOKENS * load.in_flight
    return load.predicted_wait_ms(now_ms) + tokens * load.speed.ms_per_token


def _least_bad(
    candidates: Sequence[LoadT], ask: Ask, tried: Collection[LoadT], now_ms: int
) -> LoadT | None:
    """The best, untried ones first, whatever their health."""
    return min(
        candidates,
        key=lambda load: (load in tried, predicted_ttft_ms(load, ask, now_ms)),
        default=None,
    )
