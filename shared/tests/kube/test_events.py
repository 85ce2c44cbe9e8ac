import re

from hypothesis import given
from hypothesis import strategies as st

from inferbus_shared.kube.events import about_of, event_name, first_event, next_event
from shared.tests.kube.scripted import pod

NOW_MS = 1_700_000_000_123
ABOUT = about_of(pod("a", 7))


def test_an_event_refers_to_its_object_and_bears_whole_seconds() -> None:
    event = first_event(ABOUT, "Created", "one pod", "us", warning=False, now_ms=NOW_MS)
    assert event["involvedObject"]["uid"] == "uid-of-a"
    assert event["metadata"]["namespace"] == "default"
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2023-11-14T22:13:20Z"
    assert (event["type"], event["count"]) == ("Normal", 1)


def test_an_event_about_an_object_of_the_cluster_is_in_default() -> None:
    about = {"kind": "Node", "name": "n", "uid": "u"}
    event = first_event(about, "R", "m", "us", warning=True, now_ms=NOW_MS)
    assert event["metadata"]["namespace"] == "default"
    assert event["type"] == "Warning"


def test_a_longer_message_than_events_take_is_shortened() -> None:
    event = first_event(ABOUT, "R", "m" * 5000, "us", warning=False, now_ms=NOW_MS)
    assert len(event["message"]) == 1024


def test_a_known_event_is_counted_up() -> None:
    assert next_event({"count": 4}, NOW_MS)["count"] == 5
    assert next_event({}, NOW_MS)["count"] == 2


PARTS = st.text(max_size=30)


@given(PARTS, PARTS, PARTS, PARTS)
def test_an_event_has_a_name_of_its_own(
    reason: str, message: str, other_reason: str, other_message: str
) -> None:
    one = event_name(ABOUT, reason, message, "us")
    other = event_name(ABOUT, other_reason, other_message, "us")
    assert (one == other) == ((reason, message) == (other_reason, other_message))


@given(st.from_regex(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?", fullmatch=True))
def test_the_name_of_an_event_is_one_that_the_server_takes(name: str) -> None:
    found = event_name({"name": name, "uid": "u"}, "R", "m", "us")
    assert len(found) <= 253
    assert re.fullmatch(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?", found)
