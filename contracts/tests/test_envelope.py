import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.envelope import (
    Envelope,
    event_id,
    format_time,
    observation_id,
    parse_headers,
    parse_time,
)
from inferbus_contracts.keys import ObjectKey

KEY = ObjectKey("ModelServing", "ns", "chat", "prefill")
FULL = Envelope(
    id="i",
    type="scaling.decided",
    source="autoscaler/a1",
    time_ms=1_769_860_800_123,
    key=KEY,
    correlation_id="first",
    causation_id="before",
    traceparent="00-1-2-01",
    version=2,
)


def test_headers_are_those_of_cloudevents() -> None:
    assert FULL.headers() == {
        "ce-specversion": "1.0",
        "ce-id": "i",
        "ce-type": "dev.inferbus.scaling.decided.v2",
        "ce-source": "autoscaler/a1",
        "ce-time": "2026-01-31T12:00:00.123Z",
        "ce-subject": "ModelServing/ns/chat/prefill",
        "ce-dataschema": "https://inferbus.dev/schemas/scaling.decided.v2.json",
        "content-type": "application/json",
        "Nats-Msg-Id": "i",
        "ce-correlationid": "first",
        "ce-causationid": "before",
        "traceparent": "00-1-2-01",
    }


def test_an_envelope_comes_back_from_its_headers() -> None:
    bare = Envelope(id="i", type="spec.changed", source="s/1", time_ms=0, key=KEY.owner)
    for envelope in (FULL, bare):
        assert parse_headers(envelope.headers()) == envelope
    assert "traceparent" not in bare.headers()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ce-id": ""}, "lacks ce-id"),
        ({"ce-specversion": "0.3"}, "specversion"),
        ({"ce-type": "scaling.decided"}, "ce-type"),
        ({"ce-type": "dev.inferbus.scaling.decided.vx"}, "ce-type"),
        ({"ce-time": "2026-01-31T12:00:00"}, "no zone"),
        ({"ce-time": "yesterday"}, "yesterday"),
        ({"ce-subject": "chat"}, "no key"),
    ],
)
def test_a_header_that_is_wrong_is_named(changes: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_headers(FULL.headers() | changes)


def test_missing_headers_are_all_named() -> None:
    with pytest.raises(ValueError, match=r"ce-specversion.*ce-subject"):
        parse_headers({})


@given(st.integers(0, 4_000_000_000_000))
def test_times_come_back_to_the_millisecond(time_ms: int) -> None:
    assert parse_time(format_time(time_ms)) == time_ms


def test_times_in_other_zones_are_the_same_moment() -> None:
    assert parse_time("2026-01-31T13:00:00.5+01:00") == parse_time("2026-01-31T12:00:00.500Z")


def test_the_same_cause_makes_the_same_event() -> None:
    one = event_id("scaling.decided", KEY, "cause")
    assert one == event_id("scaling.decided", KEY, "cause")
    others = {
        event_id("scaling.applied", KEY, "cause"),
        event_id("scaling.decided", KEY.owner, "cause"),
        event_id("scaling.decided", KEY, "other"),
        event_id("scaling.decided", KEY, "cause", 1),
    }
    assert len(others | {one}) == 5


def test_a_state_seen_again_later_is_another_observation() -> None:
    first = observation_id("workload.observed", KEY, "u", "A", "")
    between = observation_id("workload.observed", KEY, "u", "B", first)
    again = observation_id("workload.observed", KEY, "u", "A", between)
    assert len({first, between, again}) == 3
    assert first == observation_id("workload.observed", KEY, "u", "A", "")
