"""Messages of the bus as lines."""

import json

from inferbus_cli.lines import as_json_line, dated, short, wide
from inferbus_cli.reading import Read
from inferbus_contracts.envelope import Envelope
from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.events.scaling import ApplyOutcome, ScalingApplied
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.messages import Delivered, decode, encode
from inferbus_shared.clock import REAL_TIME

TIME_MS = 1_795_182_724_908
APPLIED = ScalingApplied(
    decision_id="d", outcome=ApplyOutcome.APPLIED, replicas=3, generation=2, uid="u"
)
ENVELOPE = Envelope(
    id="id-1",
    type="scaling.applied",
    source="workload-reconciler/r",
    time_ms=TIME_MS,
    key=ObjectKey("ModelServing", "default", "m"),
    causation_id="cause-1",
)


def message(subject: str = "", data: bytes | None = None, **headers: str) -> Delivered:
    sent = encode(ENVELOPE, APPLIED)
    return Delivered(
        subject=subject or sent.subject,
        headers=(sent.headers if data is None else {}) | headers,
        data=sent.body if data is None else data,
        stream="FACTS",
        sequence=7,
        stamp_ms=TIME_MS,
    )


def event(**headers: str) -> Read:
    raw = message(**headers)
    return Read(raw, decode(raw, REAL_TIME))


def test_an_event_is_time_type_key_and_what_it_says() -> None:
    said = "scaling.applied ModelServing/default/m applied, 3 replicas, generation 2"
    assert " ".join(short(event()).split()) == f"13:52:04.908 {said}"
    assert dated(event()).startswith("2026-11-20T13:52:04.908Z  scaling.applied ")


def test_wide_adds_where_it_stands_and_where_it_comes_from() -> None:
    line = wide(event())
    for part in ("[FACTS:7]", "id=id-1", "from=workload-reconciler/r", "cause=cause-1"):
        assert part in line
    assert line.count("\n") == 1


def test_json_has_the_whole_event() -> None:
    told = json.loads(as_json_line(event()))
    assert (told["stream"], told["sequence"], told["id"]) == ("FACTS", 7, "id-1")
    assert told["data"] == APPLIED.to_dict()
    assert told["key"] == "ModelServing/default/m"


def test_a_dead_letter_says_who_refused_it_and_why() -> None:
    place = "inbox.autoscaler.0.scaling.applied.ModelServing.default.m"
    raw = message(f"dlq.autoscaler.{place}", **{"inferbus-reason": "no such target"})
    line = short(Read(raw, decode(raw, REAL_TIME)))
    assert "refused by autoscaler: no such target" in line
    assert json.loads(as_json_line(Read(raw, None)))["reason"] == "no such target"


def test_an_unreadable_event_is_shown_with_what_is_wrong() -> None:
    problem = Problem(code=ErrorCode.POISON_EVENT, message="body doesn't fit: replicas")
    read = Read(message(data=b"{not json"), None, problem)
    assert "unreadable" in short(read)
    assert "body doesn't fit: replicas" in short(read)
    told = json.loads(as_json_line(read))
    assert (told["body"], told["problem"]["code"]) == ("{not json", "IB-3004")


def test_a_request_says_what_it_is_about() -> None:
    body = b'{"key":"Pod/default/p","documents":[1,2],"force":false}'
    read = Read(message("inferbus.v1.api.objects.apply", body), None)
    assert "request" in short(read)
    assert "objects.apply" in short(read)
    assert "key=Pod/default/p" in short(read)
    assert "2 documents" in short(read)
    assert "problem" not in json.loads(as_json_line(read))


def test_a_timer_says_when_it_is_due() -> None:
    subject = "inferbus.v1.timer.autoscaler.ModelServing.default.m"
    raw = message(subject, **{"Nats-Schedule": "@at 2026-11-20T14:00:00Z"})
    line = short(Read(raw, decode(raw, REAL_TIME)))
    assert "timer " in line
    assert "due 2026-11-20T14:00:00Z" in line
