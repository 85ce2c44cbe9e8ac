"""What requests that wait for their turn have in common, whatever the order they are let go in.

Invariant: an order holds a request from `join` until `take` or `leave`, and remembers one that it
let go until `ended`; each request passes through each of these at most once.
"""

from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Applicant:
    """A request that wants its turn."""

    principal: str
    """Who sent it; empty where nobody was authenticated."""
    session: str
    """What it belongs to, as its client says; empty: to nothing."""
    prompt_tokens: int
    """Estimated and scaled."""
    max_output_tokens: int | None
    body_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request took; zeros where no engine answered it."""

    input_tokens: int = 0
    output_tokens: int = 0
    completed: bool = False
    """Its response ended as it should."""


class Order(Protocol[T]):
    """Whose turn it is among the requests for one model."""

    def __len__(self) -> int:
        """How many wait."""
        ...

    def join(self, item: T, applicant: Applicant, now_ms: int) -> None:
        """A request begins to wait."""
        ...

    def head(self) -> T | None:
        """Whose turn is next; None when nobody waits."""
        ...

    def take(self, now_ms: int) -> T:
        """Let the head go; there is one."""
        ...

    def leave(self, item: T, now_ms: int) -> bool:
        """A request gives up waiting; False where it didn't wait."""
        ...

    def ended(self, item: T, usage: Usage, now_ms: int) -> None:
        """A request that was let go has ended."""
        ...
