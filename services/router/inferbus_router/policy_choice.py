"""Which endpoint of a model server a request goes to: the least predicted load.

Load is counted in tokens and from what this router itself knows at once, not from polled gauges
(routing spec, defects 13 to 15): the prompts that are sent and have no first token yet, and what
runs. Invariant: `choose` never returns an endpoint outside its candidates, prefers those that are
healthy and not tried yet, and changes nothing.
"""

from collections.abc import Collection, Sequence
from typing import TypeVar

from inferbus_router.policy_ejection import Health

RUNNING_REQUEST_TOKENS = 64
"""What one running request weighs beside waiting prompt tokens: decoding steps that prefill
shares.
"""
MOST_LOOKED_AT = 16
"""In a large fleet the best of this many is as good as the best of all, and found in constant
time.
"""


class EndpointLoad:
    """What this router has going on at one endpoint."""

    def __init__(self, pod: str) -> None:
        self.pod = pod
        self.in_flight = 0
        """Requests sent and not ended."""
        self.waiting_prompt_tokens = 0
        """Prompt tokens of those that have no first byte of a response yet."""
        self.health = Health()

    def started(self, prompt_tokens: int) -> None:
        """A request is sent."""
        self.in_flight += 1
        self.waiting_prompt_tokens += prompt_tokens
        if self.health.ejected_until_ms:
            self.health.probing = True

    def first_byte(self, prompt_tokens: int) -> None:
        """Its response begins: the prompt is processed."""
        self.waiting_prompt_tokens -= prompt_tokens

    def ended(self) -> None:
        """It is over, however it went; `first_byte` was called before, also without a response."""
        self.in_flight -= 1

    def predicted_load(self) -> int:
        """Work ahead of a new request, in tokens."""
        return self.waiting_prompt_tokens + RUNNING_REQUEST_TOKENS * self.in_flight


LoadT = TypeVar("LoadT", bound=EndpointLoad)


def choose(
    candidates: Sequence[LoadT], start: int, tried: Collection[LoadT], now_ms: int
) -> LoadT | None:
    """The endpoint for a request; None only when there are no candidates.

    `start` is where the search begins, a counter of the caller: among equal loads the first found
    wins, so that an idle fleet is used in turn. Endpoints of `tried` (earlier attempts) and ejected
    ones are taken only when no other is left: a fleet that is ejected as a whole is used as if none
    were, since waiting can't help.
    """
    count = len(candidates)
    if count == 1:
        return candidates[0]
    best: LoadT | None = None
    best_load = 0
    looked_at = 0
    for offset in range(count):
        load = candidates[(start + offset) % count]
        if load in tried or (load.health.ejected_until_ms and not load.health.admits(now_ms)):
            continue
        predicted = load.predicted_load()
        if best is None or predicted < best_load:
            best, best_load = load, predicted
        looked_at += 1
        if looked_at == MOST_LOOKED_AT or not best_load:
            break
    return best or _least_bad(candidates, tried)


def _least_bad(candidates: Sequence[LoadT], tried: Collection[LoadT]) -> LoadT | None:
    """The least loaded, untried ones first, whatever their health."""
    return min(candidates, key=lambda load: (load in tried, load.predicted_load()), default=None)
