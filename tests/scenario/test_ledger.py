"""The check that nothing was lost or doubled: it sees what it is there to see."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from inferbus_contracts.base import EventData
from inferbus_contracts.canonical import digest
from inferbus_contracts.envelope import Envelope
from inferbus_contracts.events.metrics import MetricsSampled
from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    DecisionRecord,
    ScalingApplied,
    ScalingDecided,
)
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.state import StateStored
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.topology import state_type
from inferbus_shared.bus.messages import Delivered, Received
from tests.support.ledger import DECIDERS, Event, Ledger, contradictions

KEY = ObjectKey("ModelServing", "default", "chat")
AUTOSCALER, OPTIMIZER = DECIDERS
STATES = [{"schema": 1}, {"schema": 1, "decision": 1}, {"schema": 1, "decision": 2}]


def event(data: EventData, id_: str, *, type_: str = "", sequence: int = 0) -> Event:
    envelope = Envelope(id=id_, type=type_ or data.event_type, source="a/b", time_ms=0, key=KEY)
    return Received(envelope, data, "S", sequence)


def decision(number: int, *, before: str, sequence: int) -> Event:
    """The n-th decision, from one replica more to the next."""
    record = DecisionRecord(
        decider=AUTOSCALER.value,
        version="1",
        policy="p",
        policy_digest="",
        input={"state": STATES[number - 1], "facts": {"decision_id": before}},
        inbox_sequence=sequence,
        state_before=digest(STATES[number - 1]),
        state_after=digest(STATES[number]),
        causes=[f"cause-{sequence}"],
    )
    data = ScalingDecided(
        current=number, desired=number + 1, target_uid="u", target_generation=number, record=record
    )
    return event(data, f"decision-{number}")


def answer(number: int, *, id_: str = "") -> Event:
    data = ScalingApplied(
        decision_id=f"decision-{number}",
        outcome=ApplyOutcome.APPLIED,
        replicas=number + 1,
        generation=number + 1,
        uid="u",
    )
    return event(data, id_ or f"answer-{number}", sequence=number * 10 + 1)


def change(generation: int, changed_by: str = "scale") -> Event:
    data = SpecChanged(uid="u", generation=generation, digest="", object={}, changed_by=changed_by)
    return event(data, f"change-{generation}-{changed_by}")


def state(decision_id: str, sequence: int, content: dict[str, int]) -> Event:
    data = StateStored(
        state_schema=1,
        applied_sequence=sequence,
        cause=f"cause-{sequence}",
        decision_id=decision_id,
        state=content,
    )
    return event(data, "state", type_=state_type(AUTOSCALER))


def good() -> Ledger:
    """Two decisions in a row, the second at once after the answer to the first."""
    sample = MetricsSampled(policy="p", taken_at_ms=0, window_ms=0, targets=[])
    return Ledger(
        decisions=[
            decision(1, before="", sequence=10),
            decision(2, before="decision-1", sequence=11),
        ],
        states=[state("decision-2", 11, STATES[2])],
        answers=[answer(1), answer(2)],
        changes=[change(1, "cli"), change(2), change(3)],
        inboxes={
            AUTOSCALER.value: {number: event(sample, f"cause-{number}") for number in (10, 11)},
            OPTIMIZER.value: {},
        },
    )


def test_a_log_that_adds_up_is_not_contradicted() -> None:
    assert contradictions(good()) == []


def test_a_change_that_came_too_soon_after_another_need_not_be_told() -> None:
    assert contradictions(replace(good(), changes=[change(1, "cli"), change(3)])) == []


Harm = Callable[[Ledger], Ledger]

HARMS: dict[str, tuple[Harm, str]] = {
    "the first decision is lost": (
        lambda log: replace(log, decisions=log.decisions[1:]),
        "follows one that isn't there",
    ),
    "the last decision is lost": (
        lambda log: replace(log, decisions=log.decisions[:1]),
        "names decision-2, not decision-1",
    ),
    "a decision stands there twice": (
        lambda log: replace(log, decisions=[*log.decisions, log.decisions[1]]),
        "decision-2 stands there 2 times",
    ),
    "two decisions follow from one event": (
        lambda log: replace(
            log,
            decisions=[log.decisions[0], decision(2, before="decision-1", sequence=10)],
        ),
        "follows no later event",
    ),
    "two decisions follow from one state": (
        lambda log: replace(log, decisions=[log.decisions[0], decision(2, before="", sequence=11)]),
        "names none before it",
    ),
    "the state changed without an event": (
        lambda log: replace(log, decisions=[log.decisions[0], _from_another_state(log)]),
        "changed by itself",
    ),
    "the event behind a decision is lost": (
        lambda log: replace(log, inboxes={**log.inboxes, AUTOSCALER.value: {}}),
        "rests on no event 10",
    ),
    "the state is lost": (lambda log: replace(log, states=[]), "has no state"),
    "the state is another": (
        lambda log: replace(log, states=[state("decision-2", 11, STATES[0])]),
        "is not the one that decision-2 says",
    ),
    "the state never heard an answer": (
        lambda log: replace(
            log,
            inboxes={
                **log.inboxes,
                AUTOSCALER.value: {**log.inboxes[AUTOSCALER.value], 21: answer(2)},
            },
        ),
        "doesn't know of its answer answer-2",
    ),
    "an answer is lost": (
        lambda log: replace(log, answers=log.answers[:1]),
        "decision-2 lacks 1 answer",
    ),
    "a decision is answered twice": (
        lambda log: replace(log, answers=[*log.answers, answer(2, id_="another")]),
        "decision-2 has 1 answers too many",
    ),
    "a target is scaled without a decision": (
        lambda log: replace(log, changes=[*log.changes, change(4)]),
        "scaled in generations",
    ),
    "a generation comes back": (
        lambda log: replace(log, changes=[*log.changes, change(1, "cli")]),
        "go back",
    ),
    "an event was given up": (
        lambda log: replace(
            log, dead_letters=[Delivered("dlq.autoscaler.x", {}, b"", "DLQ", 1, 0)]
        ),
        "dead letter dlq.autoscaler.x",
    ),
}


def _from_another_state(log: Ledger) -> Event:
    """The second decision, but computed from another state than the first one left."""
    second = log.decisions[1]
    assert isinstance(second.data, ScalingDecided)
    other = second.data.record.model_copy(
        update={
            "input": {**second.data.record.input, "state": STATES[0]},
            "state_before": digest(STATES[0]),
        }
    )
    return replace(second, data=second.data.model_copy(update={"record": other}))


@pytest.mark.parametrize("harm", HARMS)
def test_what_is_lost_or_doubled_is_told(harm: str) -> None:
    damage, words = HARMS[harm]
    said = contradictions(damage(good()))
    assert any(words in one for one in said), said
