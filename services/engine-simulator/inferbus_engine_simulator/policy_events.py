"""What goes into the engine model and what comes out of it.

Invariant: every submitted request ends in exactly one `Finished` or one `Aborted`, and the events
of one request are ordered in time. Times inside the model are microseconds, because a decode step
takes a few milliseconds; callers give and get whole milliseconds.
"""

from enum import StrEnum
from typing import NamedTuple


class FinishReason(StrEnum):
    """Why a request ended; the values of the OpenAI field `finish_reason`, and `abort`."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"


class Request(NamedTuple):
    """One sequence to compute."""

    request_id: str
    prompt: tuple[int, ...]
    """Token ids, at least one, each from 0 to 2**32 - 1."""
    output_tokens: int
    """How many tokens it generates; 0 ends it with its prefill (an embedding)."""
    finish_reason: FinishReason = FinishReason.STOP
    output_seed: int = 0
    """Which text it generates, see `policy_tokens.output_token`."""
    adapter: str = ""
    """Name of the LoRA adapter; blocks are shared only inside one adapter."""
    transferred_tokens: int = 0
    """Leading prompt tokens whose KV blocks come from another engine and need no prefill."""
    transfer_us: int = 0
    """How long they are on their way; until then others overtake the request."""
    streaming: bool = False


class Timeline(NamedTuple):
    """The life of a finished request, microseconds and tokens."""

    arrived_us: int
    admitted_us: int
    """When it first left the waiting queue."""
    first_token_us: int
    """When its prefill ended, also where no token follows."""
    finished_us: int
    prompt_tokens: int
    cached_tokens: int
    """Prompt tokens found in the prefix cache when it was first admitted."""
    transferred_tokens: int
    output_tokens: int
    reason: FinishReason
    streaming: bool
    adapter: str


class Admitted(NamedTuple):
    """A request left the waiting queue."""

    request_id: str
    at_us: int
    waited_us: int
    """Since it arrived; 0 when it comes back from a preemption."""
    queried_tokens: int
    """Tokens looked up in the prefix cache; 0 when it comes back from a preemption."""
    cached_tokens: int
    """Of these, found."""


class Prefilled(NamedTuple):
    """The prompt of a request is computed, for the first time."""

    request_id: str
    at_us: int
    prompt_tokens: int
    cached_tokens: int
    transferred_tokens: int
    streaming: bool


class Emitted(NamedTuple):
    """A request produced a token."""

    request_id: str
    at_us: int
    position: int
    """0 for the first token."""
    since_us: int
    """Since the token before it; since the arrival for the first."""
    streaming: bool


class Preempted(NamedTuple):
    """A request lost its blocks and waits to be computed again."""

    request_id: str
    at_us: int


class Finished(NamedTuple):
    """A request ended by itself."""

    request_id: str
    at_us: int
    timeline: Timeline


class Aborted(NamedTuple):
    """A request was ended from outside."""

    request_id: str
    at_us: int


class Stepped(NamedTuple):
    """The engine computed one batch."""

    at_us: int
    """The end of the step."""
    duration_us: int
    prefill_tokens: int
    decode_tokens: int


Event = Admitted | Prefilled | Emitted | Preempted | Finished | Aborted | Stepped
