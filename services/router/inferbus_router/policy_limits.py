"""Token rate limits that hold: reserve an estimate at admission, settle what was really used.

Token buckets as in routing spec 5, with its defects 6 and 7 avoided: both sides are checked before
either is charged, what was used is always charged in full (a bucket can go into debt, and nobody
passes until the debt is refilled), a request that failed gets its reservation back, and a changed
table keeps the buckets of the limits that stayed. Invariant: however requests interleave, the
tokens charged by a time never exceed capacity + refill until then + the debt of what was running.
"""

from dataclasses import dataclass
from typing import Literal

from inferbus_contracts.events.route import TokenLimit

LimitSide = Literal["input", "output"]


class TokenBucket:
    """A bucket of `limit` tokens that refills evenly over `unit_seconds`; starts full.

    Counts in shares of a token, `1 / unit_ms` each, so that refilling is exact in integers.
    """

    __slots__ = ("_balance", "_updated_ms", "limit", "unit_ms")

    def __init__(self, limit: int, unit_seconds: int, now_ms: int) -> None:
        self.limit = limit
        self.unit_ms = unit_seconds * 1000
        self._balance = limit * self.unit_ms
        self._updated_ms = now_ms

    def tokens(self, now_ms: int) -> int:
        """Whole tokens there are; negative while in debt."""
        elapsed_ms = max(0, now_ms - self._updated_ms)
        self._updated_ms = max(now_ms, self._updated_ms)
        self._balance = min(self.limit * self.unit_ms, self._balance + self.limit * elapsed_ms)
        return self._balance // self.unit_ms

    def charge(self, tokens: int) -> None:
        """Take tokens, into debt where there aren't enough; a negative number gives back."""
        self._balance -= tokens * self.unit_ms

    def wait_ms(self, tokens: int, now_ms: int) -> int:
        """Milliseconds until there are that many, at least 1 when there aren't yet."""
        self.tokens(now_ms)
        missing = tokens * self.unit_ms - self._balance
        return max(0, -(-missing // self.limit))

    def change(self, limit: int, unit_seconds: int, now_ms: int) -> None:
        """Go on under another limit: keep the debt, and of the tokens what fits."""
        tokens = min(limit, self.tokens(now_ms))
        self.limit = limit
        self.unit_ms = unit_seconds * 1000
        self._balance = tokens * self.unit_ms


@dataclass(frozen=True, slots=True)
class Reservation:
    """What an admitted request was charged in advance."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Which side refused, and when to try again."""

    side: LimitSide
    limit: int
    unit_seconds: int
    wait_ms: int | None
    """None: never, the request alone is larger than the limit."""


class RouteLimiter:
    """The two buckets of one route."""

    def __init__(self, declared: TokenLimit, now_ms: int) -> None:
        self._expected_output = 1
        self._input: TokenBucket | None = None
        self._output: TokenBucket | None = None
        self.change(declared, now_ms)

    def change(self, declared: TokenLimit, now_ms: int) -> None:
        """Go on under another declaration; sides that stay keep their balance."""
        self.declared = declared
        unit = declared.unit_seconds
        self._input = _changed(self._input, declared.input_tokens, unit, now_ms)
        self._output = _changed(self._output, declared.output_tokens, unit, now_ms)

    def reserve(
        self, now_ms: int, prompt_tokens: int, max_output_tokens: int | None
    ) -> Reservation | Refused:
        """Admit a request and charge what it is expected to use, or refuse it and charge nothing.

        Output passes while there is one token left (routing spec 5); what is reserved of it is the
        request's own bound, else what recent requests of the route used, as far as there is.
        """
        if (refused := self._refusal(now_ms, prompt_tokens)) is not None:
            return refused
        if self._input:
            self._input.charge(prompt_tokens)
        reserved_output = 0
        if self._output:
            wanted = self._expected_output if max_output_tokens is None else max_output_tokens
            reserved_output = max(0, min(wanted, self._output.tokens(now_ms)))
            self._output.charge(reserved_output)
        return Reservation(prompt_tokens if self._input else 0, reserved_output)

    def _refusal(self, now_ms: int, prompt_tokens: int) -> Refused | None:
        needs: tuple[tuple[LimitSide, TokenBucket | None, int], ...] = (
            ("input", self._input, prompt_tokens),
            ("output", self._output, 1),
        )
        for side, bucket, needed in needs:
            if bucket is None or bucket.tokens(now_ms) >= needed:
                continue
            wait_ms = bucket.wait_ms(needed, now_ms) if needed <= bucket.limit else None
            return Refused(side, bucket.limit, bucket.unit_ms // 1000, wait_ms)
        return None

    def settle(self, reserved: Reservation, input_tokens: int, output_tokens: int) -> None:
        """Charge what a request really used instead of what was reserved; 0 and 0 when it
        failed.
        """
        if self._input:
            self._input.charge(input_tokens - reserved.input_tokens)
        if self._output:
            self._output.charge(output_tokens - reserved.output_tokens)
            if output_tokens:
                self._expected_output += round((output_tokens - self._expected_output) / 8)


def _changed(
    bucket: TokenBucket | None, limit: int | None, unit_seconds: int, now_ms: int
) -> TokenBucket | None:
    if not limit:
        return None
    if bucket is None:
        return TokenBucket(limit, unit_seconds, now_ms)
    bucket.change(limit, unit_seconds, now_ms)
    return bucket
