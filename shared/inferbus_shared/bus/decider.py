"""The loop of a service that decides: event, state, core, one atomic commit.

What follows from one event (new state, decisions, timer) is stored together, conditional on the
state that it rests on. Whoever loses a race is rejected whole, reads the state again and, if that
names the event already, acknowledges it. A crash between any two steps repeats the event and ends
the same way. (DESIGN section 5, "Commit")
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from nats.aio.msg import Msg
from prometheus_client import CollectorRegistry

from inferbus_contracts.base import EventData
from inferbus_contracts.deciding import ClearTimer, Origin, SetTimer
from inferbus_contracts.envelope import event_id
from inferbus_contracts.events.scaling import Woken
from inferbus_contracts.events.state import StateStored
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.topology import timer_subject, woken_type
from inferbus_shared.bus.bus import Bus, no_timer, timer
from inferbus_shared.bus.fate import Retry
from inferbus_shared.bus.messages import Outgoing, Received
from inferbus_shared.bus.metrics import CommitMetrics
from inferbus_shared.bus.states import Standing, States
from inferbus_shared.bus.store import UnknownOutcomeError, WrongSequenceError

AGAIN_SECONDS = 0.05

MOST_KEYS = 64
"""Keys whose events one state remembers: those that spoke last, of a policy that names others."""


class Says(Protocol):
    """An effect that is a decision."""

    @property
    def key(self) -> str:
        """What it decides about: the key of the event that says it."""
        ...

    @property
    def data(self) -> EventData:
        """The body of the event that says it."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from one event."""

    state: dict[str, Any]
    effects: Sequence[SetTimer | ClearTimer | Says] = field(default=())

    @property
    def decisions(self) -> list[Says]:
        """The decisions, in order."""
        return [effect for effect in self.effects if not isinstance(effect, SetTimer | ClearTimer)]

    @property
    def timers(self) -> list[SetTimer | ClearTimer]:
        """The wishes about the key's timer; the last one counts."""
        return [effect for effect in self.effects if isinstance(effect, SetTimer | ClearTimer)]


def origin_of(event: Received[EventData]) -> Origin:
    """Where an event stands, and what led to it, for the record of what follows."""
    causes = (event.id, event.envelope.causation_id, event.envelope.correlation_id)
    known = dict.fromkeys(cause for cause in causes if cause)
    return Origin(sequence=event.sequence, causes=tuple(known))


def _is_applied(key: ObjectKey, event: Received[EventData], state: StateStored) -> bool:
    """Whether an event is part of the state of `key`, which may be another instance's work.

    The sequence alone tells it of redeliveries only: an inbox that was made anew counts from one.
    """
    if state.cause == event.id:
        return True
    applied = _applied_sequences(key, state).get(str(event.key), 0)
    return event.deliveries > 1 and event.sequence <= applied


def _applied_sequences(key: ObjectKey, state: StateStored | None) -> dict[str, int]:
    """The last sequence that was folded into the state of `key`, by key of the event.

    Only events of one key are delivered in order: those of another key may stand in another
    partition, and one that comes late was not folded in because a later one was.
    """
    if state is None:
        return {}
    return state.applied_sequences or {str(key): state.applied_sequence}


def _applied_with(
    key: ObjectKey, event: Received[EventData], state: StateStored | None
) -> dict[str, int] | None:
    """The same with `event`; None while all events were of the state's own key."""
    applied = _applied_sequences(key, state) | {str(event.key): event.sequence}
    if applied.keys() == {str(key)}:
        return None
    newest = sorted(applied, key=lambda one: applied[one])[-MOST_KEYS:]
    return {one: applied[one] for one in newest}


Decide = Callable[[ObjectKey, Received[EventData], StateStored | None], Verdict | None]
"""(key of the state, event, state before) to what follows; None: nothing does."""

KeyOf = Callable[[Received[EventData]], ObjectKey | None]
"""The key of the state that an event is about; None: nobody's."""


Committed = Callable[[ObjectKey, Received[EventData], Verdict], None]
"""Told the key, the event, and what followed from it, once that is stored."""


class Decider:
    """Runs a pure core over an inbox."""

    def __init__(
        self,
        bus: Bus,
        state_schema: int,
        decide: Decide,
        key_of: KeyOf,
        registry: CollectorRegistry,
        committed: Committed = lambda *_: None,
    ) -> None:
        """`committed` is told what was stored; the registry gets the decider's own metrics."""
        self._bus = bus
        self._metrics = CommitMetrics(bus.service, registry)
        self._committed = committed
        self._schema = state_schema
        self._decide = decide
        self._key_of = key_of
        self._states = States(bus)
        self._woken_type = woken_type(bus.service)

    async def handle(self, event: Received[EventData], _: Msg) -> None:
        """One event of the inbox; raises `Retry` when the state changed underneath."""
        key = self._key_of(event)
        if key is None:
            return
        try:
            await self._handle(key, event)
        except WrongSequenceError as error:
            raise Retry(AGAIN_SECONDS, f"the state of {key} changed: {error}") from error
        except UnknownOutcomeError as error:
            raise Retry(AGAIN_SECONDS, f"the commit for {key} got no answer: {error}") from error

    async def _handle(self, key: ObjectKey, event: Received[EventData]) -> None:
        """First on the state that is remembered, which saves reading it.

        Who was overtaken stores nothing. That nothing follows is true of what stands there only.
        """
        known = self._states.remembered(key)
        if known is not None:
            try:
                if await self._follows(key, event, known):
                    return
            except WrongSequenceError:
                known = None
        standing = await self._states.read(key)
        if known is None or known.revision != standing.revision:
            await self._follows(key, event, standing)

    async def _follows(
        self, key: ObjectKey, event: Received[EventData], standing: Standing
    ) -> bool:
        """Store what follows from the event; False where nothing does."""
        before = standing.state
        if before is not None and _is_applied(key, event, before):
            return True
        verdict = self._decide(key, event, before)
        if verdict is None:
            return False
        decisions = self._decisions(event, verdict)
        state = self._state_after(key, event, before, verdict, decisions)
        said = [*(message for _, message in decisions), *self._timers(key, event, verdict)]
        with self._metrics.committing():
            await self._states.store(key, event, state, said, standing.revision)
        self._committed(key, event, verdict)
        return True

    def _state_after(
        self,
        key: ObjectKey,
        event: Received[EventData],
        before: StateStored | None,
        verdict: Verdict,
        decisions: Sequence[tuple[ObjectKey, Outgoing]],
    ) -> StateStored:
        ids = {about: message.headers["ce-id"] for about, message in decisions}
        known = (before.decision_ids if before else None) or {}
        others = known | {str(about): id_ for about, id_ in ids.items() if about != key}
        last = decisions[-1][1].headers["ce-id"] if decisions else ""
        return StateStored(
            state_schema=self._schema,
            applied_sequence=event.sequence,
            applied_sequences=_applied_with(key, event, before),
            cause=event.id,
            decision_id=last or (before.decision_id if before else ""),
            decision_ids=others or None,
            state=verdict.state,
        )

    def _decisions(
        self, event: Received[EventData], verdict: Verdict
    ) -> list[tuple[ObjectKey, Outgoing]]:
        """Each decision under the key that it is about, which need not be the state's."""
        said: list[tuple[ObjectKey, Outgoing]] = []
        for decision in verdict.decisions:
            about = ObjectKey.parse(decision.key)
            ordinal = sum(about == other for other, _ in said)
            message = self._bus.event(decision.data, about, cause=event, ordinal=ordinal)
            said.append((about, message))
        return said

    def _timers(
        self, key: ObjectKey, event: Received[EventData], verdict: Verdict
    ) -> list[Outgoing]:
        if not verdict.timers:
            return []
        wanted = verdict.timers[-1]
        place = timer_subject(self._bus.service, key)
        if isinstance(wanted, ClearTimer):
            return [no_timer(place)]
        woken = self._bus.event(
            Woken(due_ms=wanted.at_ms, reason=wanted.reason),
            key,
            event_type=self._woken_type,
            id=event_id(self._woken_type, key, f"{event.id}|{wanted.at_ms}"),
            time_ms=wanted.at_ms,
        )
        return [timer(place, woken, self._bus.clock.anchor.to_real(wanted.at_ms))]
