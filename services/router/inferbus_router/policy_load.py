"""What goes on at one endpoint, and how long a new prompt would wait there.

Engines process prompts in the order they come, so what waits is a line: its first prompt began when
the one before it was seen to end. Prompts count by their uncached tokens, and what this router
can't see, other routers tell (`policy_peers`). Invariant: what a request adds is taken away once,
however it ends, and an endpoint without requests has no load.
"""

from collections.abc import Sequence
from typing import NamedTuple

from inferbus_router.policy_ask import Ask
from inferbus_router.policy_ejection import Health
from inferbus_router.policy_prefixes import PrefixIndex
from inferbus_router.policy_speed import FleetSpeed, Slowness

WARM_UP_MS = 15_000
"""An endpoint that has just become ready is thought slower for that long (slow start)."""
WARM_UP_FACTOR = 4.0
"""By that much at first; less and less towards the end."""
_TELLING_SHARE = 3
"""The time of a prompt tells whether its prefix was there where that is so many times the rest."""
_TELLING_MS = 100
"""And where it would have taken that long without."""
_LEAST_LEFT = 0.25
"""Of a prompt that should be processed by now, at least that part is thought to be left."""
_OVERDUE_LEFT = 0.5
"""And at least that part of the time that it is overdue: what is late comes late."""


class Dispatch:
    """One request as it was sent to one endpoint."""

    __slots__ = ("cached_tokens", "is_seen", "new_tokens", "sent_ms", "was_first")

    def __init__(
        self, new_tokens: int, cached_tokens: int, sent_ms: int, is_seen: bool, was_first: bool
    ) -> None:
        self.new_tokens = new_tokens
        """Prompt tokens that the endpoint has to process."""
        self.cached_tokens = cached_tokens
        """Those that it is thought to hold."""
        self.sent_ms = sent_ms
        self.is_seen = is_seen
        """Its first token will be seen; without a stream only its end is."""
        self.was_first = was_first
        """Nothing of other routers waited there before it."""


class Backlog(NamedTuple):
    """What other routers have going on at an endpoint."""

    running: int
    """Requests sent and not ended."""
    waiting_tokens: int
    """Uncached prompt tokens without a first token; never 0 where there is a first prompt."""
    first_tokens: int
    """Those of the prompt that was sent first."""
    first_sent_ms: int
    processed_ms: int
    """When the last first token was seen."""


class EndpointLoad:
    """What is known and predicted about one endpoint."""

    def __init__(self, pod: str) -> None:
        self.pod = pod
        self.name = pod
        """What routers call it among themselves."""
        self.in_flight = 0
        """Requests sent and not ended."""
        self.waiting_prompt_tokens = 0
        """Uncached prompt tokens of those that have no first token yet."""
        self.health = Health()
        self.fleet_speed = FleetSpeed()
        """Of all endpoints that are thought to be alike; they share it."""
        self.slowness = Slowness()
        self.prefixes: PrefixIndex[EndpointLoad] | None = None
        """Where prompts that are sent are remembered; None: nowhere."""
        self.peers: Backlog | None = None
        """What other routers tell; None: nothing."""
        self.sent_prompts: SentPrompts | None = None
        """Where prompts that are sent are noted for other routers; None: nowhere."""
        self.warms_up_until_ms = 0
        self._line: dict[Dispatch, None] = {}
        self._first: Dispatch | None = None
        """The first of the line, which every prediction asks for."""
        self._processed_ms = 0

    @property
    def ms_per_token(self) -> float:
        """How long a token of a prompt takes."""
        return self.fleet_speed.ms_per_token * self.slowness.factor

    def ready_since(self, now_ms: int) -> None:
        """It takes requests from now on: it has to warm up."""
        self.warms_up_until_ms = now_ms + WARM_UP_MS

    def started(self, ask: Ask, now_ms: int) -> Dispatch:
        """A request is sent."""
        cached = ask.cached.get(self, 0) if ask.cached else 0
        is_hashed = ask.is_hashed
        if is_hashed and self.prefixes is not None:
            blocks = ask.blocks
            self.prefixes.sent(self, blocks)
            if self.sent_prompts is not None:
                self.sent_prompts.append((self, blocks))
        new_tokens = ask.prompt_tokens - cached
        if new_tokens < 1:
            new_tokens = 1
        self.in_flight += 1
        self.waiting_prompt_tokens += new_tokens
        if self.health.ejected_until_ms:
            self.health.probing = True
        peers = self.peers
        was_first = is_hashed and (peers is None or not peers.waiting_tokens)
        dispatch = Dispatch(new_tokens, cached, now_ms, ask.is_stream, was_first)
        self._line[dispatch] = None
        if self._first is None:
            self._first = dispatch
        return dispatch

    def first_token(self, dispatch: Dispatch, now_ms: int) -> None:
        """Its first token is seen: the prompt is processed."""
        self._pass_unseen(now_ms)
        if dispatch not in self._line:
            return
        if dispatch.was_first and self._first is dispatch:
            began_ms = max(self._processed_ms, dispatch.sent_ms)
            self._learn(dispatch, now_ms - began_ms)
        self._leave_line(dispatch)
        self._processed_ms = now_ms

    def _learn(self, dispatch: Dispatch, took_ms: int) -> None:
        """From a prompt that had the engine for itself.

        Where the prefix is most of it, the time tells whether it was there.
        """
        new_tokens, cached_tokens = dispatch.new_tokens, dispatch.cached_tokens
        if cached_tokens >= _TELLING_SHARE * new_tokens and self.prefixes is not None:
            ms_per_token = self.ms_per_token
            all_ms = (new_tokens + cached_tokens) * ms_per_token
            was_there = took_ms * took_ms < all_ms * new_tokens * ms_per_token
            if all_ms >= _TELLING_MS:
                self.prefixes.found(self, was_there)
            if not was_there:
                return
        self.slowness.learn(new_tokens, took_ms, self.fleet_speed)

    def told_cached(self, dispatch: Dispatch, cached_tokens: int) -> None:
        """The engine says how much of the prompt it held."""
        if dispatch.cached_tokens and self.prefixes is not None:
            self.prefixes.found(self, 2 * cached_tokens >= dispatch.cached_tokens)

    def failed(self, ask: Ask) -> None:
        """It didn't serve the request: what it was sent may be lost."""
        if self.prefixes is not None and ask.is_hashed:
            self.prefixes.removed(self, ask.blocks)

    def ended(self, dispatch: Dispatch) -> None:
        """It is over, however it went."""
        if dispatch in self._line:
            self._leave_line(dispatch)
        self.in_flight -= 1

    def _leave_line(self, dispatch: Dispatch) -> None:
        line = self._line
        del line[dispatch]
        self.waiting_prompt_tokens -= dispatch.new_tokens
        if self._first is dispatch:
            self._first = next(iter(line)) if line else None

    def _pass_unseen(self, now_ms: int) -> None:
        """Take those from the head of the line that should be processed, where nobody sees it."""
        ms_per_token = self.ms_per_token
        while (first := self._first) is not None and not first.is_seen:
            ends_ms = self._began_ms(first) + first.new_tokens * ms_per_token
            if ends_ms > now_ms:
                return
            self._leave_line(first)
            self._processed_ms = round(ends_ms)

    def _began_ms(self, first: Dispatch) -> int:
        return max(self._processed_ms, first.sent_ms)

    def predicted_wait_ms(self, now_ms: int, ms_per_token: float) -> float:
        """How long until the engine would begin with another prompt, at that speed."""
        peers = self.peers
        if peers is not None and peers.waiting_tokens:
            return self._shared_wait_ms(peers, now_ms, ms_per_token)
        first = self._first
        if first is None:
            return 0.0
        tokens, began_ms = first.new_tokens, first.sent_ms
        if began_ms < self._processed_ms:
            began_ms = self._processed_ms
        work_ms = tokens * ms_per_token
        left_ms = work_ms - (now_ms - began_ms)
        if left_ms <= 0 and not first.is_seen:
            self._pass_unseen(now_ms)
            return self.predicted_wait_ms(now_ms, ms_per_token)
        if left_ms < work_ms * _LEAST_LEFT:
            left_ms = _left_ms(work_ms, left_ms)
        return (self.waiting_prompt_tokens - tokens) * ms_per_token + left_ms

    def _shared_wait_ms(self, peers: Backlog, now_ms: int, ms_per_token: float) -> float:
        """The same with all routers' prompts in one line."""
        first_tokens, sent_ms = peers.first_tokens, peers.first_sent_ms
        self._pass_unseen(now_ms)
        own = self._first
        if own is not None and own.sent_ms < sent_ms:
            first_tokens, sent_ms = own.new_tokens, own.sent_ms
        began_ms = max(sent_ms, self._processed_ms, peers.processed_ms)
        work_ms = first_tokens * ms_per_token
        behind_tokens = self.waiting_prompt_tokens + peers.waiting_tokens - first_tokens
        return behind_tokens * ms_per_token + _left_ms(work_ms, work_ms - (now_ms - began_ms))

    def own_backlog(self) -> Backlog:
        """What this router has going on there, for other routers."""
        first = self._first
        return Backlog(
            running=self.in_flight,
            waiting_tokens=self.waiting_prompt_tokens,
            first_tokens=first.new_tokens if first else 0,
            first_sent_ms=first.sent_ms if first else 0,
            processed_ms=self._processed_ms,
        )

    def warm_up_factor(self, now_ms: int) -> float:
        """How much slower it is thought than it will be."""
        left_ms = self.warms_up_until_ms - now_ms
        return 1 + (WARM_UP_FACTOR - 1) * left_ms / WARM_UP_MS if left_ms > 0 else 1.0


SentPrompts = list[tuple[EndpointLoad, Sequence[int]]]
"""Prompts by their blocks, and where they went."""


def _left_ms(work_ms: float, left_ms: float) -> float:
    """What is left of a prompt of `work_ms`, of which the clock has left `left_ms`."""
    if left_ms > work_ms * _LEAST_LEFT:
        return left_ms
    return max(work_ms * _LEAST_LEFT, -left_ms * _OVERDUE_LEFT)
