"""What was decided on a platform, and whether the log of it adds up.

Read from the bus alone. Invariant of a log that adds up: every decision of a key names the one
before it and the one inbox event that it follows from, each is answered exactly once per target,
and the state that stands is that of the last one. A decision that was lost or made twice breaks it.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from inferbus_contracts.base import EventData
from inferbus_contracts.canonical import digest
from inferbus_contracts.catalog import EVENTS, Stream
from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    DecisionRecord,
    ScalingAllocated,
    ScalingApplied,
    ScalingDecided,
    ScalingDemanded,
)
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.state import StateStored
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import ROOT
from inferbus_contracts.topology import (
    DEAD_LETTER_ROOT,
    DEAD_LETTERS,
    INBOX_EVENTS,
    inbox_stream,
    is_timer,
    state_type,
)
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Follower, Start
from inferbus_shared.bus.messages import Delivered, Received
from inferbus_shared.bus.states import stored_state

Event = Received[EventData]

DECIDERS = (Service.AUTOSCALER, Service.OPTIMIZER)
_SCALED = "scale"
"""Field manager of a change that a decision made."""


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """What stands in the log about scaling."""

    decisions: Sequence[Event]
    """Of all keys and deciders, in the order of the log."""
    states: Sequence[Event]
    """In the order of the log; those that ride on a decision are told by it."""
    answers: Sequence[Event]
    """`scaling.applied`."""
    changes: Sequence[Event]
    """`spec.changed`."""
    inboxes: dict[str, dict[int, Event]]
    """By decider, by sequence."""
    dead_letters: Sequence[Delivered] = ()

    def decisions_about(self, key: str) -> list[Event]:
        """The decisions of one key, in order."""
        return [event for event in self.decisions if str(event.key) == key]


def record_of(decision: Event) -> DecisionRecord:
    """The record in a decision."""
    assert isinstance(decision.data, ScalingDecided | ScalingDemanded | ScalingAllocated)
    return decision.data.record


async def read_ledger(bus: Bus) -> Ledger:
    """What stands there now. `bus` is that of the command line."""
    decisions = [message async for message in _messages(bus, Stream.DECISIONS, ROOT)]
    decided = await _read(bus, decisions)
    facts = await _read(bus, [message async for message in _messages(bus, Stream.FACTS, ROOT)])
    kinds = ScalingDecided | ScalingDemanded | ScalingAllocated
    return Ledger(
        decisions=[event for event in decided if isinstance(event.data, kinds)],
        states=await _states(bus, decisions),
        answers=[event for event in facts if isinstance(event.data, ScalingApplied)],
        changes=[event for event in facts if isinstance(event.data, SpecChanged)],
        inboxes={
            decider.value: {event.sequence: event for event in await _inbox(bus, decider)}
            for decider in DECIDERS
        },
        dead_letters=[message async for message in _messages(bus, DEAD_LETTERS, DEAD_LETTER_ROOT)],
    )


def contradictions(ledger: Ledger) -> list[str]:
    """What does not add up, one sentence each; empty when nothing was lost or done twice."""
    return [
        *_repeated("decision", ledger.decisions),
        *_repeated("answer", ledger.answers),
        *(said for chain in _chains(ledger.decisions) for said in _broken_chain(chain, ledger)),
        *_wrong_states(ledger),
        *_wrong_answers(ledger),
        *_wrong_generations(ledger),
        *(f"dead letter {one.subject}: {one.headers}" for one in ledger.dead_letters),
    ]


def _repeated(what: str, events: Iterable[Event]) -> Iterator[str]:
    counts = Counter(event.id for event in events)
    yield from (f"{what} {id_} stands there {n} times" for id_, n in counts.items() if n > 1)


def _chains(decisions: Iterable[Event]) -> list[list[Event]]:
    """The decisions of each decider and key, in order."""
    chains: defaultdict[tuple[str, str], list[Event]] = defaultdict(list)
    for decision in decisions:
        chains[record_of(decision).decider, str(decision.key)].append(decision)
    return list(chains.values())


def _broken_chain(chain: Sequence[Event], ledger: Ledger) -> Iterator[str]:
    for decision in chain:
        yield from _wrong_cause(decision, ledger)
    first = _named_before(chain[0])
    if first:
        yield f"the first decision of {chain[0].key} follows one that isn't there: {first}"
    for before, after in itertools.pairwise(chain):
        named = _named_before(after)
        if named != before.id:
            yield f"{after.id} of {after.key} names {named or 'none'} before it, not {before.id}"
        yield from _wrong_order(before, after, ledger)


def _wrong_cause(decision: Event, ledger: Ledger) -> Iterator[str]:
    record = record_of(decision)
    cause = ledger.inboxes[record.decider].get(record.inbox_sequence)
    if cause is None or cause.id != record.causes[0]:
        yield f"{decision.id} of {decision.key} rests on no event {record.inbox_sequence}"
    if digest(record.input["state"]) != record.state_before:
        yield f"{decision.id} of {decision.key} was not computed from {record.state_before}"


def _wrong_order(before: Event, after: Event, ledger: Ledger) -> Iterator[str]:
    first, second = record_of(before), record_of(after)
    if first.inbox_sequence >= second.inbox_sequence:
        yield f"{after.id} of {after.key} follows no later event than {before.id}"
    inbox = ledger.inboxes[second.decider]
    between = range(first.inbox_sequence + 1, second.inbox_sequence)
    undisturbed = not any(number in inbox for number in between)
    if undisturbed and first.state_after != second.state_before:
        yield f"the state of {after.key} changed by itself between {before.id} and {after.id}"


def _named_before(decision: Event) -> str:
    """The decision that the record says was the last one when it was made."""
    record = record_of(decision)
    facts = record.input["facts"]
    if record.target is not None:
        return str(facts.get("decision_ids", {}).get(record.target, ""))
    return str(facts.get("decision_id", ""))


def _wrong_states(ledger: Ledger) -> Iterator[str]:
    states = {(_decider_of(state), str(state.key)): state for state in ledger.states}
    for chain in _chains(ledger.decisions):
        last, record = chain[-1], record_of(chain[-1])
        together = record.target is not None
        state = states.get((record.decider, record.policy if together else str(last.key)))
        if state is None:
            yield f"{last.key} was decided about and has no state"
            continue
        assert isinstance(state.data, StateStored)
        ids = state.data.decision_ids or {}
        named = ids.get(str(last.key)) if together else state.data.decision_id
        if named != last.id:
            yield f"the state of {last.key} names {named}, not {last.id}"
        if state.data.cause == record.causes[0] and digest(state.data.state) != record.state_after:
            yield f"the state of {last.key} is not the one that {last.id} says"
    yield from _unheard(ledger, states)


def _unheard(ledger: Ledger, states: dict[tuple[str, str], Event]) -> Iterator[str]:
    """Replicas that changed are always remembered by the decider of that target."""
    for (decider, key), state in states.items():
        assert isinstance(state.data, StateStored)
        applied = state.data.applied_sequences or {key: state.data.applied_sequence}
        for event in ledger.inboxes[decider].values():
            told = isinstance(event.data, ScalingApplied) and str(event.key) in applied
            if not told or event.sequence <= applied[str(event.key)]:
                continue
            if event.data.outcome is ApplyOutcome.APPLIED:  # type: ignore[attr-defined]
                yield f"the state of {key} doesn't know of its answer {event.id}"


def _decider_of(state: Event) -> str:
    return EVENTS[state.envelope.type].writer.value


def _expected_answers(decisions: Iterable[Event]) -> Iterator[tuple[str, str]]:
    for decision in decisions:
        if isinstance(decision.data, ScalingDecided):
            yield decision.id, str(decision.key)
        elif isinstance(decision.data, ScalingAllocated):
            yield from ((decision.id, share.target) for share in decision.data.allocations)


def _given_answers(answers: Iterable[Event]) -> Iterator[tuple[str, str]]:
    for answer in answers:
        assert isinstance(answer.data, ScalingApplied)
        yield answer.data.decision_id, str(answer.key)


def _wrong_answers(ledger: Ledger) -> Iterator[str]:
    expected = Counter(_expected_answers(ledger.decisions))
    given = Counter(_given_answers(ledger.answers))
    for (decision, target), number in (expected - given).items():
        yield f"decision {decision} lacks {number} answer about {target}"
    for (decision, target), number in (given - expected).items():
        yield f"decision {decision} has {number} answers too many about {target}"


def _wrong_generations(ledger: Ledger) -> Iterator[str]:
    """Only an answered decision scales, and generations never go back.

    A change may follow so soon that the one before it is never told: facts are levels. And whoever
    died between scaling and answering finds its own change there, and answers `unchanged`.
    """
    generations: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for change in ledger.changes:
        assert isinstance(change.data, SpecChanged)
        if not change.data.deleted:
            generations[change.data.uid].append((change.data.changed_by, change.data.generation))
    for uid, seen in generations.items():
        numbers = [generation for _, generation in seen]
        if numbers != sorted(numbers):
            yield f"the generations of {uid} go back: {numbers}"
        applied = {
            answer.data.generation
            for answer in ledger.answers
            if isinstance(answer.data, ScalingApplied)
            and answer.data.uid == uid
            and answer.data.outcome in (ApplyOutcome.APPLIED, ApplyOutcome.UNCHANGED)
        }
        scaled = {generation for manager, generation in seen if manager == _SCALED}
        if not scaled <= applied:
            yield f"{uid} was scaled in generations {scaled}, answers say {applied}"


async def _inbox(bus: Bus, decider: Service) -> list[Event]:
    """What a decider heard that may change a state, in order."""
    root = f"inbox.{decider.value}.*"
    return sorted(
        [
            await bus.read(message)
            for event_type in INBOX_EVENTS[decider]
            async for message in _messages(bus, inbox_stream(decider), f"{root}.{event_type}")
        ],
        key=lambda event: event.sequence,
    )


async def _read(bus: Bus, messages: Iterable[Delivered]) -> list[Event]:
    """The events in messages; timers, which are no events yet, are passed over."""
    return [await bus.read(message) for message in messages if not is_timer(message.subject)]


async def _states(bus: Bus, messages: Iterable[Delivered]) -> list[Event]:
    """The states that stand by themselves or ride on a decision, in order."""
    found: list[Event] = []
    for message in messages:
        state = None if is_timer(message.subject) else stored_state(message)
        if state is not None:
            event = await bus.read(message)
            type_ = state_type(EVENTS[event.envelope.type].writer)
            found.append(replace(event, envelope=replace(event.envelope, type=type_), data=state))
    return found


async def _messages(bus: Bus, stream: str, root: str) -> AsyncIterator[Delivered]:
    follower = Follower(bus.connection, stream, f"{root}.>", Start.everything())
    async for message in follower.snapshot():
        yield message
