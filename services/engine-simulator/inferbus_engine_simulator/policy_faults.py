"""Failures on demand: what goes wrong, how often, and for which request.

Invariant: with the same seed, the same requests meet the same faults; a fault with a count hurts at
most that many requests.
"""

import hashlib
from collections.abc import Sequence
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError, shorten


class FaultKind(StrEnum):
    """How a request, or the engine, goes wrong."""

    ERROR = "error"
    """The answer is an error with `status`."""
    HANG = "hang"
    """No answer, or none after `after_tokens`, until the client gives up."""
    DROP_CONNECTION = "drop_connection"
    """The connection is cut, after `after_tokens` of a stream."""
    SLOW = "slow"
    """The engine's steps take `factor` times as long; or the request waits `delay_ms` first."""
    EXIT = "exit"
    """The process ends without a word, exit code `exit_code`, after `after_tokens`."""
    UNHEALTHY = "unhealthy"
    """/health answers `status`."""
    GARBAGE = "garbage"
    """The answer's body is no JSON."""


class FaultScope(StrEnum):
    """What goes wrong."""

    REQUESTS = "requests"
    """Generation, or the whole engine."""
    METRICS = "metrics"
    """The metrics page alone; the engine goes on serving."""


class Fault(BaseModel):
    """One failure."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    kind: FaultKind
    scope: FaultScope = FaultScope.REQUESTS
    probability: float = Field(default=1.0, ge=0, le=1)
    """Share of the requests that it hurts."""
    count: int | None = Field(default=None, ge=1)
    """How many requests it hurts before it is over; None: until it is removed."""
    status: int = Field(default=500, ge=400, le=599)
    after_tokens: int = Field(default=0, ge=0)
    """How much of a stream is sent before it happens."""
    delay_ms: int = Field(default=0, ge=0)
    """Virtual milliseconds."""
    factor: float = Field(default=1.0, ge=0, le=1000)
    exit_code: int = Field(default=1, ge=0, le=255)

    def cut(self, sent: int, coming: int) -> int | None:
        """How many of `coming` tokens are still sent before it strikes, after `sent` ones.

        None: it does not strike yet.
        """
        return self.after_tokens - sent if sent + coming >= self.after_tokens else None


_LIST = TypeAdapter(list[Fault])


def parse_faults(document: object, field: str) -> list[Fault]:
    """One fault or a list of them, as JSON data; raises `ProblemsError` naming each bad field."""
    listed = document if isinstance(document, list) else [document]
    try:
        return _LIST.validate_python(listed)
    except ValidationError as error:
        raise ProblemsError(
            *(
                Problem(
                    code=ErrorCode.BAD_ARGUMENT,
                    message=detail["msg"],
                    field=".".join((field, *(str(part) for part in detail["loc"]))),
                    value=shorten(detail["input"]),
                    remedy=f"kinds are {', '.join(FaultKind)}",
                )
                for detail in error.errors()
            )
        ) from None


class FaultPlan:
    """The faults that are set, and how often each has happened."""

    def __init__(self, faults: Sequence[Fault] = (), seed: int = 0) -> None:
        self._seed = seed
        self._asked = 0
        self._faults = [(fault, fault.count) for fault in faults]

    @property
    def faults(self) -> list[Fault]:
        """Those that can still happen."""
        return [fault for fault, _ in self._faults]

    @property
    def slowdown(self) -> float:
        """What the duration of the engine's steps is multiplied by."""
        factors = [
            fault.factor
            for fault, _ in self._faults
            if fault.kind is FaultKind.SLOW and fault.scope is FaultScope.REQUESTS
        ]
        return max(factors, default=1.0)

    def add(self, faults: Sequence[Fault]) -> None:
        """Set more faults."""
        self._faults += [(fault, fault.count) for fault in faults]

    def clear(self) -> None:
        """Remove all faults."""
        self._faults = []

    def for_request(self) -> Fault | None:
        """What goes wrong with the next request, if anything does."""
        return self._draw(unhealthy=False)

    def for_health(self) -> Fault | None:
        """What goes wrong with the next health check, if anything does."""
        return self._draw(unhealthy=True)

    def for_metrics(self) -> Fault | None:
        """What goes wrong with the next metrics page, if anything does."""
        return self._draw(unhealthy=False, scope=FaultScope.METRICS)

    def _draw(self, unhealthy: bool, scope: FaultScope = FaultScope.REQUESTS) -> Fault | None:
        self._asked += 1
        for index, (fault, left) in enumerate(self._faults):
            if (fault.kind is FaultKind.UNHEALTHY) is not unhealthy or fault.scope is not scope:
                continue
            if fault.kind is FaultKind.SLOW and not fault.delay_ms:
                continue
            if self._chance(index) >= fault.probability:
                continue
            if left is not None:
                self._faults[index : index + 1] = [(fault, left - 1)] if left > 1 else []
            return fault
        return None

    def _chance(self, index: int) -> float:
        text = f"{self._seed}/{self._asked}/{index}".encode()
        digest = hashlib.blake2b(text, digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64
