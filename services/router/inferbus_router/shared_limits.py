"""The limit of a route that several routers share: asked of a Redis server, or held alone while
that is silent.

Invariant: what the server granted is settled with the server, what was granted here is settled
here; a request is never charged to both.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from inferbus_contracts.events.route import TokenLimit
from inferbus_router.policy_limits import (
    ExpectedOutput,
    Need,
    Refused,
    Reservation,
    RouteLimiter,
    larger_than_limit,
)
from inferbus_router.policy_shared_limits import (
    Charge,
    SharedKeys,
    read_answer,
    reserve_arguments,
    shared_keys,
)


class Link(Protocol):
    """The connection to a server (`redis_link`)."""

    is_up: bool
    routers: int

    def ask(
        self,
        keys: SharedKeys,
        arguments: Sequence[int],
        on_answer: Callable[[Sequence[Any] | None], None],
    ) -> None:
        """Have tokens reserved; `on_answer` gets None where there is no answer in time."""
        ...

    def charge(self, charge: Charge) -> None:
        """Take tokens, or give some back."""
        ...


class SharedReservation:
    """What the server charged in advance for a request."""

    def __init__(
        self,
        limiter: "SharedLimiter",
        declared: TokenLimit,
        keys: SharedKeys,
        input_tokens: int,
        output_tokens: int,
    ) -> None:
        self._limiter = limiter
        self._declared = declared
        self._keys = keys
        self._input_tokens = input_tokens
        self._output_tokens = output_tokens

    def settle(self, input_tokens: int, output_tokens: int) -> None:
        """Charge what the request really used instead, once; 0 and 0 when it failed."""
        declared, keys, link = self._declared, self._keys, self._limiter.link
        sides = (
            (keys.input, declared.input_tokens, input_tokens - self._input_tokens),
            (keys.output, declared.output_tokens, output_tokens - self._output_tokens),
        )
        for key, limit, tokens in sides:
            if limit and tokens:
                link.charge(Charge(key, limit, declared.unit_seconds, tokens))
        self._limiter.expected.learn(output_tokens)


Answer = Reservation | SharedReservation | Refused


class SharedLimiter:
    """The shared limit of one route."""

    def __init__(self, declared: TokenLimit, route_name: str, link: Link) -> None:
        """`route_name` stands for the route in the server's keys."""
        self.declared = declared
        self.link = link
        self.fallbacks = 0
        """Requests that were decided about here because the server was silent."""
        self._route_name = route_name
        self._local = RouteLimiter(declared)

    @property
    def local(self) -> RouteLimiter:
        """What decides while the server is silent."""
        return self._local

    @property
    def expected(self) -> ExpectedOutput:
        """How long answers are."""
        return self._local.expected

    def change(self, declared: TokenLimit, now_ms: int) -> None:
        """Go on under another declaration; what the server holds stays."""
        self.declared = declared
        self._local.change(declared, now_ms, self.link.routers)

    def reserve(
        self, need: Need, now_ms: int, on_answer: Callable[[Answer], None]
    ) -> Answer | None:
        """Admit a request or refuse it; None where that is told to `on_answer` later."""
        if not self.link.is_up:
            return self.alone(need, now_ms)
        declared = self.declared
        if (refused := larger_than_limit(declared, need)) is not None:
            return refused
        keys = shared_keys(declared, need, self._route_name)
        expected = self.expected.of(need)

        question = _Question(self, declared, need, keys, now_ms, on_answer)
        self.link.ask(keys, reserve_arguments(declared, need, expected), question.answered)
        return None

    def alone(self, need: Need, now_ms: int) -> Reservation | Refused:
        """By this router's part of the limit, as many parts as there were routers last."""
        self.fallbacks += 1
        self._local.change(self.declared, now_ms, self.link.routers)
        return self._local.reserve(need, now_ms)


class _Question:
    """What the server was asked for one request."""

    def __init__(
        self,
        limiter: SharedLimiter,
        declared: TokenLimit,
        need: Need,
        keys: SharedKeys,
        now_ms: int,
        on_answer: Callable[[Answer], None],
    ) -> None:
        self._limiter = limiter
        self._declared = declared
        self._need = need
        self._keys = keys
        self._now_ms = now_ms
        self._on_answer: Callable[[Answer], None] | None = on_answer

    def answered(self, answer: Sequence[Any] | None) -> None:
        """The server said this; None: nothing in time, and the request is decided about here.

        What it grants after that is given back.
        """
        on_answer, self._on_answer = self._on_answer, None
        granted = None if answer is None else self._read(answer)
        if on_answer is not None:
            on_answer(granted or self._limiter.alone(self._need, self._now_ms))
        elif isinstance(granted, SharedReservation):
            granted.settle(0, 0)

    def _read(self, answer: Sequence[Any]) -> SharedReservation | Refused:
        declared = self._declared
        read = read_answer(declared, answer)
        if isinstance(read, Refused):
            return read
        input_tokens = self._need.prompt_tokens if declared.input_tokens else 0
        return SharedReservation(
            self._limiter, declared, self._keys, input_tokens, read.output_tokens
        )
