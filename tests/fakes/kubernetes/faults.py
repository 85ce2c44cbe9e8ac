"""What a test makes go wrong, and what it can look back on: faults, and the record of calls.

A fault answers in place of the server (`Answer`, `Page`), never (`Hang`), or breaks the connection
in the middle of the answer (`Cut`). With `carried_out` the write is made all the same: the request
arrived, its reply is lost.
"""

from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

RECORDED_CALLS = 100_000
WRITES = frozenset({"create", "update", "patch", "apply", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class Answer:
    """A Status with this code; `retry_after_seconds` goes into its header and details."""

    code: int
    message: str = "injected by the test"
    reason: str | None = None
    retry_after_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """What a proxy says when it can't reach the server: HTML."""

    code: int = 502
    text: str = "<html><head><title>502 Bad Gateway</title></head></html>"


@dataclass(frozen=True, slots=True)
class Hang:
    """No answer until the client gives up or the server stops."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection closes after the first bytes of the answer."""


@dataclass(slots=True)
class Call:
    """One request and what became of it. `code` is 0 where no answer arrived whole."""

    verb: str
    method: str
    path: str
    query: dict[str, str]
    user: str
    plural: str
    subresource: str
    namespace: str
    name: str
    raw: bytes
    code: int = 0

    @property
    def body(self) -> Any:
        return orjson.loads(self.raw) if self.raw else None

    @property
    def writes(self) -> bool:
        return self.verb in WRITES


Hook = Callable[[Call], Awaitable[None] | None]


@dataclass(slots=True)
class Fault:
    """Strikes the calls that match, `times` of them (None: all), after `skip` have passed.

    An empty criterion matches everything; `verb` is Kubernetes' (get, list, watch, create, update,
    patch, apply, delete, deletecollection), `method` is HTTP's, `resource` the plural.
    """

    action: Answer | Page | Hang | Cut
    verb: str = ""
    method: str = ""
    resource: str = ""
    subresource: str | None = None
    namespace: str = ""
    name: str = ""
    user: str = ""
    times: int | None = 1
    skip: int = 0
    carried_out: bool = False
    struck: int = 0

    def matches(self, call: Call) -> bool:
        wanted = (
            (self.verb, call.verb),
            (self.method, call.method),
            (self.resource, call.plural),
            (self.namespace, call.namespace),
            (self.name, call.name),
            (self.user, call.user),
        )
        if self.subresource is not None and self.subresource != call.subresource:
            return False
        return all(not asked or asked == actual for asked, actual in wanted)


@dataclass(slots=True)
class Faults:
    """The faults that are set; the first that matches strikes."""

    active: list[Fault] = field(default_factory=list)

    def add(self, action: Answer | Page | Hang | Cut, **criteria: Any) -> Fault:
        fault = Fault(action, **criteria)
        self.active.append(fault)
        return fault

    def clear(self) -> None:
        self.active.clear()

    def strike(self, call: Call) -> Fault | None:
        for fault in self.active:
            if not fault.matches(call):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            fault.struck += 1
            if fault.times is not None and fault.struck >= fault.times:
                self.active.remove(fault)
            return fault
        return None


class Record:
    """The last calls, oldest first, and how many there were of each verb, resource and code."""

    def __init__(self, keep: int = RECORDED_CALLS) -> None:
        self.calls: deque[Call] = deque(maxlen=keep)
        self.counts: Counter[tuple[str, str, int]] = Counter()

    def begun(self, call: Call) -> None:
        self.calls.append(call)

    def answered(self, call: Call) -> None:
        self.counts[call.verb, call.plural, call.code] += 1

    def count(self, verb: str = "", resource: str = "", code: int | None = None) -> int:
        return sum(
            number
            for (a_verb, a_resource, a_code), number in self.counts.items()
            if verb in ("", a_verb) and resource in ("", a_resource) and code in (None, a_code)
        )

    def writes(self) -> list[Call]:
        return [call for call in self.calls if call.writes]

    def clear(self) -> None:
        self.calls.clear()
        self.counts.clear()
