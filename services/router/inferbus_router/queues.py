"""Requests in line for their turn: one line per model that clients name, between limits and draw.

The order is a pure rule (`policy_fairness`, `policy_boost`); here is what lets requests go when
endpoints have room: an arrival, the end of a request, a new table, and a timer, since room also
comes where no request of the same line has ended (routing spec, defect 26). Invariant: a request
waits, or is counted as let go, or is unknown here; `leave` makes it unknown, whatever it was, so
that no permit is lost. Lines exist only for models that routes name, or while somebody is in them.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from inferbus_router.policy_boost import BoostOrder
from inferbus_router.policy_fairness import FairOrder
from inferbus_router.policy_load import EndpointLoad
from inferbus_router.policy_queue import Applicant, Order, Usage
from inferbus_router.policy_room import Room
from inferbus_router.queue_settings import QueueSettings
from inferbus_router.timekeeper import Deadlines, Timekeeper

QUEUED_BOUNDS_MS = (1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000)
"""Upper bounds of the time in line (routing spec 6.6, buckets c)."""
LOOK_AGAIN_MS = 50
"""While somebody waits, room is looked for that often at least."""


class QueuedRequest(Protocol):
    """A request as its line sees it."""

    def endpoints(self) -> Iterable[EndpointLoad] | None:
        """The ready ones that might serve it; None where it need not wait for any."""
        ...

    def turn_came(self) -> None:
        """It is let go: serve it. Called at most once, never within `join`."""
        ...

    def turn_missed(self, waited_ms: int) -> None:
        """It wasn't let go in time, and no longer waits."""
        ...


@dataclass(frozen=True, slots=True)
class QueueRules:
    """How the lines of one router work."""

    name: str
    """In metrics: `fairness_queue` or `session_boost_queue`."""
    make_order: Callable[[], Order[QueuedRequest]]
    room: Room
    """What endpoints take."""
    most_running: int = 0
    """Of one model; 0: as many as endpoints take."""
    timeout_ms: int = 0
    """0: none."""
    grace_ms: int = 0
    """After the end of a request nobody is let go for that long."""
    session_header: str = ""
    """Names the session of a request. Empty: none does."""
    most_waiting: int = 4096
    most_bytes: int = 1 << 28


@dataclass(eq=False)
class Line:
    """Those who wait for one model, and what is counted about them."""

    order: Order[QueuedRequest]
    running: int = 0
    closed_until_ms: int = 0
    """The grace after a request's end."""
    is_moving: bool = False
    """Requests are being let go just now."""
    dequeued: int = 0
    cancelled: int = 0
    duration_counts: list[int] = field(default_factory=lambda: [0] * (len(QUEUED_BOUNDS_MS) + 1))
    duration_sum_ms: int = 0

    def let_go(self, waited_ms: int) -> None:
        """Count a request whose turn has come."""
        self.running += 1
        self.dequeued += 1
        self.duration_counts[bisect_left(QUEUED_BOUNDS_MS, waited_ms)] += 1
        self.duration_sum_ms += waited_ms


@dataclass(eq=False, slots=True)
class _Member:
    """What is known about a request in a line, or let go by it."""

    line: Line
    since_ms: int
    body_bytes: int


class Queues:
    """The lines of one router."""

    def __init__(self, rules: QueueRules, keeper: Timekeeper) -> None:
        self.rules = rules
        self.lines: dict[str, Line] = {}
        """By model, as clients name it."""
        self._keeper = keeper
        self._waiting: dict[QueuedRequest, _Member] = {}
        self._let_go: dict[QueuedRequest, _Member] = {}
        self._bytes = 0
        self._looks: Deadlines[Queues] = keeper.deadlines(LOOK_AGAIN_MS, Queues.look)
        self._timeouts: Deadlines[QueuedRequest] | None = None
        if rules.timeout_ms:
            self._timeouts = keeper.deadlines(rules.timeout_ms, self._timed_out)

    def __len__(self) -> int:
        return len(self._waiting)

    def has_space(self, body_bytes: int) -> bool:
        """Whether another request may wait."""
        if len(self._waiting) >= self.rules.most_waiting:
            return False
        return self._bytes + body_bytes <= self.rules.most_bytes

    def join(self, item: QueuedRequest, model: str, applicant: Applicant, now_ms: int) -> bool:
        """Stand in line for a model; True where it is the request's turn at once.

        Otherwise `turn_came` or `turn_missed` is called later, unless it leaves before.
        """
        line = self.lines.get(model)
        if line is None:
            line = self.lines[model] = Line(self.rules.make_order())
        member = _Member(line, now_ms, applicant.body_bytes)
        line.order.join(item, applicant, now_ms)
        if len(line.order) == 1 and self._may_go(line, item, now_ms):
            line.order.take(now_ms)
            self._let_go[item] = member
            line.let_go(0)
            return True
        self._waiting[item] = member
        self._bytes += member.body_bytes
        if self._timeouts is not None:
            self._timeouts.start(item, now_ms)
        if len(self._waiting) == 1:
            self._looks.start(self, now_ms)
        return False

    def leave(self, item: QueuedRequest, usage: Usage, now_ms: int) -> None:
        """A request has ended, wherever it was; nothing happens where it is unknown."""
        member = self._waiting.get(item)
        if member is not None:
            self._stop_waiting(item, member)
            member.line.order.leave(item, now_ms)
            member.line.cancelled += 1
            return
        member = self._let_go.pop(item, None)
        if member is None:
            return
        line = member.line
        line.running -= 1
        line.order.ended(item, usage, now_ms)
        if self.rules.grace_ms:
            line.closed_until_ms = now_ms + self.rules.grace_ms
        self._let_all_go(line, now_ms)

    def follow(self, models: Iterable[str]) -> None:
        """There is another table, which serves these models."""
        served = set(models)
        for model, line in list(self.lines.items()):
            if model not in served and not len(line.order) and not line.running:
                del self.lines[model]
        self.look()

    def look(self) -> None:
        """Let everybody go for whom there is room."""
        now_ms = self._keeper.now_ms()
        for line in list(self.lines.values()):
            self._let_all_go(line, now_ms)
        if self._waiting:
            self._looks.start(self, now_ms)

    def _let_all_go(self, line: Line, now_ms: int) -> None:
        """A request that fails at once comes back here while others are being let go."""
        if line.is_moving:
            return
        line.is_moving = True
        try:
            while (item := line.order.head()) is not None and self._may_go(line, item, now_ms):
                member = self._waiting[item]
                line.order.take(now_ms)
                self._stop_waiting(item, member)
                self._let_go[item] = member
                line.let_go(now_ms - member.since_ms)
                item.turn_came()
        finally:
            line.is_moving = False

    def _may_go(self, line: Line, item: QueuedRequest, now_ms: int) -> bool:
        if now_ms < line.closed_until_ms:
            return False
        endpoints = item.endpoints()
        if endpoints is None:
            return True
        if self.rules.most_running:
            return line.running < self.rules.most_running
        return self.rules.room.is_among(endpoints, now_ms)

    def _stop_waiting(self, item: QueuedRequest, member: _Member) -> None:
        del self._waiting[item]
        self._bytes -= member.body_bytes
        if self._timeouts is not None:
            self._timeouts.stop(item)
        if not self._waiting:
            self._looks.stop(self)

    def _timed_out(self, item: QueuedRequest) -> None:
        now_ms = self._keeper.now_ms()
        waited_ms = now_ms - self._waiting[item].since_ms
        self.leave(item, Usage(), now_ms)
        item.turn_missed(waited_ms)


def make_queues(settings: QueueSettings, keeper: Timekeeper) -> Queues | None:
    """The queues that the settings ask for; None where they ask for none."""
    rules = _fairness(settings) or _boost(settings)
    return None if rules is None else Queues(rules, keeper)


def _fairness(settings: QueueSettings) -> QueueRules | None:
    if not settings.enable_fairness_scheduling:
        return None
    weights, memory_ms = settings.weights, settings.fairness_window_size
    return QueueRules(
        name="fairness_queue",
        make_order=lambda: FairOrder(weights, memory_ms),
        room=Room(
            settings.queue_least_in_flight,
            settings.queue_most_in_flight,
            settings.queue_backlog_ms,
        ),
        most_running=settings.fairness_max_concurrent,
        timeout_ms=settings.fairness_queue_timeout,
        most_waiting=settings.queue_requests,
        most_bytes=settings.queue_bytes,
    )


def _boost(settings: QueueSettings) -> QueueRules | None:
    if not settings.enable_session_boost:
        return None
    in_flight = settings.session_boost_inflight_per_pod
    return QueueRules(
        name="session_boost_queue",
        make_order=lambda: BoostOrder(settings.session_boost_max_sessions),
        room=Room(in_flight, in_flight),
        timeout_ms=max(0, settings.session_boost_timeout),
        grace_ms=settings.session_boost_grace_period,
        session_header=settings.session_boost_header,
        most_waiting=settings.queue_requests,
        most_bytes=settings.queue_bytes,
    )
