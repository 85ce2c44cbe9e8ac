"""Token rate limits that hold: reserve an estimate at admission, settle what was really used.

Token buckets as in routing spec 5, with its defects 6 and 7 avoided: both sides are checked before
either is charged, what was used is always charged in full (a bucket can go into debt, and nobody
passes until the debt is refilled), a request that failed gets its reservation back, and a changed
table keeps the buckets of the limits that stayed. A limit holds for each name that clients use, and
for each of them that is known by name. Invariant: however requests interleave, the tokens charged
to a holder by a time never exceed capacity + refill until then + the debt of what was running.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from inferbus_contracts.events.route import TokenLimit

LimitSide = Literal["input", "output"]

_FEW = 1024
"""Holders that are remembered without asking whether they have to be."""


class TokenBucket:
    """A bucket of `limit` tokens that refills evenly over `unit_seconds`; starts full.

    Counts in shares of a token, `1 / unit_ms` each, so that refilling is exact in integers.
    """

    __slots__ = ("_balance", "_capacity", "_updated_ms", "limit", "unit_ms")

    def __init__(self, limit: int, unit_seconds: int, now_ms: int) -> None:
        self.limit = limit
        self.unit_ms = unit_seconds * 1000
        self._balance = self._capacity = limit * self.unit_ms
        self._updated_ms = now_ms

    def tokens(self, now_ms: int) -> int:
        """Whole tokens there are; negative while in debt."""
        return self._shares(now_ms) // self.unit_ms

    def _shares(self, now_ms: int) -> int:
        """The balance at that time."""
        elapsed_ms = now_ms - self._updated_ms
        if elapsed_ms > 0:
            self._updated_ms = now_ms
            self._balance += self.limit * elapsed_ms
        if self._balance > self._capacity:
            self._balance = self._capacity
        return self._balance

    def charge(self, tokens: int) -> None:
        """Take tokens, into debt where there aren't enough; a negative number gives back."""
        self._balance -= tokens * self.unit_ms

    def charge_at_most(self, tokens: int) -> int:
        """Take that many, or as many as there were when it was last asked; returns how many."""
        left = self._balance // self.unit_ms
        if tokens > left:
            tokens = left if left > 0 else 0
        self._balance -= tokens * self.unit_ms
        return tokens

    def lets_pass(self, tokens: int, now_ms: int) -> bool:
        """Whether there are that many, or it is full: what the whole of a limit lets pass, a part
        of it does too.
        """
        balance = self._shares(now_ms)
        return balance >= tokens * self.unit_ms or balance >= self._capacity

    def wait_ms(self, tokens: int, now_ms: int) -> int:
        """Milliseconds until it lets that many pass, at least 1 when it doesn't yet."""
        missing = min(tokens * self.unit_ms, self._capacity) - self._shares(now_ms)
        return max(0, -(-missing // self.limit))

    def change(self, limit: int, unit_seconds: int, now_ms: int) -> None:
        """Go on under another limit: keep the debt, and of the tokens what fits."""
        tokens = min(limit, self.tokens(now_ms))
        self.limit = limit
        self.unit_ms = unit_seconds * 1000
        self._capacity = limit * self.unit_ms
        self._balance = tokens * self.unit_ms


class Need(NamedTuple):
    """What a request asks of a limit."""

    name: str
    """The model's, or a LoRA adapter's, as the client said it."""
    principal: str
    prompt_tokens: int
    max_output_tokens: int | None
    """The request's own bound; None where it has none."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Which side refused, and when to try again."""

    side: LimitSide
    limit: int
    unit_seconds: int
    wait_ms: int | None
    """None: never, the request alone is larger than the limit."""


class Holding:
    """The two buckets of one holder of a limit."""

    __slots__ = ("input", "open", "output")

    def __init__(self) -> None:
        self.input: TokenBucket | None = None
        self.output: TokenBucket | None = None
        self.open = 0
        """Reservations that aren't settled."""

    def change(self, declared: TokenLimit, routers: int, now_ms: int) -> None:
        """Go on under another declaration; sides that stay keep their balance."""
        unit = declared.unit_seconds
        self.input = _changed(self.input, _share(declared.input_tokens, routers), unit, now_ms)
        self.output = _changed(self.output, _share(declared.output_tokens, routers), unit, now_ms)

    def is_untouched(self, now_ms: int) -> bool:
        """Whether a new one would be the same."""
        buckets = (self.input, self.output)
        return not self.open and all(b is None or b.tokens(now_ms) >= b.limit for b in buckets)


class Reservation:
    """What an admitted request was charged in advance."""

    __slots__ = ("_holding", "_limiter", "input_tokens", "output_tokens")

    def __init__(
        self, limiter: "RouteLimiter", holding: Holding, input_tokens: int, output_tokens: int
    ) -> None:
        self._limiter = limiter
        self._holding = holding
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens

    def settle(self, input_tokens: int, output_tokens: int) -> None:
        """Charge what the request really used instead, once; 0 and 0 when it failed."""
        holding = self._holding
        holding.open -= 1
        if holding.input:
            holding.input.charge(input_tokens - self.input_tokens)
        if holding.output:
            holding.output.charge(output_tokens - self.output_tokens)
        self._limiter.expected.learn(output_tokens)


class ExpectedOutput:
    """How long answers of one route are, from recent ones."""

    tokens = 1

    def of(self, need: Need) -> int:
        """Tokens to reserve: the request's own bound, else what others used."""
        return self.tokens if need.max_output_tokens is None else need.max_output_tokens

    def learn(self, output_tokens: int) -> None:
        """An answer had that many; 0: there was none."""
        if output_tokens:
            self.tokens += round((output_tokens - self.tokens) / 8)


class RouteLimiter:
    """The limit of one route."""

    def __init__(self, declared: TokenLimit, routers: int = 1) -> None:
        """Of the declared tokens this router gives out one part in `routers`."""
        self.declared = declared
        self.expected = ExpectedOutput()
        self._routers = routers
        self._holdings: dict[tuple[str, str], Holding] = {}
        self._most_holdings = _FEW

    def change(self, declared: TokenLimit, now_ms: int, routers: int = 1) -> None:
        """Go on under another declaration, or as one of another number of routers."""
        if (declared, routers) == (self.declared, self._routers):
            return
        self.declared, self._routers = declared, routers
        for holding in self._holdings.values():
            holding.change(declared, routers, now_ms)

    def reserve(self, need: Need, now_ms: int) -> Reservation | Refused:
        """Admit a request and charge what it is expected to use, or refuse it and charge nothing.

        Output passes while there is one token left (routing spec 5); what is reserved of it is what
        is expected, as far as there is.
        """
        if (refused := larger_than_limit(self.declared, need)) is not None:
            return refused
        holding = self._holding(holder(self.declared, need), now_ms)
        input_, output = holding.input, holding.output
        if input_ and not input_.lets_pass(need.prompt_tokens, now_ms):
            return self._refusal("input", input_.wait_ms(need.prompt_tokens, now_ms))
        if output and not output.lets_pass(1, now_ms):
            return self._refusal("output", output.wait_ms(1, now_ms))
        input_tokens = output_tokens = 0
        if input_:
            input_tokens = need.prompt_tokens
            input_.charge(input_tokens)
        if output:
            output_tokens = output.charge_at_most(self.expected.of(need))
        holding.open += 1
        return Reservation(self, holding, input_tokens, output_tokens)

    def _refusal(self, side: LimitSide, wait_ms: int) -> Refused:
        declared = self.declared
        limit = declared.input_tokens if side == "input" else declared.output_tokens
        return Refused(side, limit or 0, declared.unit_seconds, wait_ms)

    def _holding(self, key: tuple[str, str], now_ms: int) -> Holding:
        holding = self._holdings.get(key)
        if holding is None:
            if len(self._holdings) >= self._most_holdings:
                self._forget_untouched(now_ms)
            holding = self._holdings[key] = Holding()
            holding.change(self.declared, self._routers, now_ms)
        return holding

    def _forget_untouched(self, now_ms: int) -> None:
        kept = {k: each for k, each in self._holdings.items() if not each.is_untouched(now_ms)}
        self._holdings = kept
        self._most_holdings = max(_FEW, 2 * len(kept))

    @property
    def holders(self) -> int:
        """How many are remembered."""
        return len(self._holdings)

    def left(self, now_ms: int) -> Iterator[tuple[tuple[str, str], int | None, int | None]]:
        """(holder, input tokens, output tokens) that are left; None where the side has no limit."""
        for key, holding in self._holdings.items():
            input_, output = (
                None if bucket is None else bucket.tokens(now_ms)
                for bucket in (holding.input, holding.output)
            )
            yield key, input_, output


def holder(declared: TokenLimit, need: Need) -> tuple[str, str]:
    """Whom a request is charged to: the name it uses and who sends it, as far as the limit tells
    them apart.
    """
    per = declared.per
    if per is None:
        return need.name, need.principal
    return need.name if "name" in per else "", need.principal if "principal" in per else ""


def larger_than_limit(declared: TokenLimit, need: Need) -> Refused | None:
    """The refusal of a request that would never pass."""
    limit = declared.input_tokens
    if not limit or need.prompt_tokens <= limit:
        return None
    return Refused("input", limit, declared.unit_seconds, None)


def _share(limit: int | None, routers: int) -> int | None:
    """One router's part, rounded up so that none has nothing."""
    return limit and -(-limit // routers)


def _changed(
    bucket: TokenBucket | None, limit: int | None, unit_seconds: int, now_ms: int
) -> TokenBucket | None:
    if not limit:
        return None
    if bucket is None:
        return TokenBucket(limit, unit_seconds, now_ms)
    bucket.change(limit, unit_seconds, now_ms)
    return bucket
