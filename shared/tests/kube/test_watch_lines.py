import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.errors import ErrorCode
from inferbus_shared.kube.problems import KubeError
from inferbus_shared.kube.watch_lines import EventType, WatchEvent, parse
from shared.tests.kube.scripted import event, pod, status


def test_an_event_says_what_happened_to_what() -> None:
    assert parse(event("ADDED", pod("a", 7)), "") == WatchEvent(EventType.ADDED, pod("a", 7))


def test_a_bookmark_says_how_far_the_watch_has_come() -> None:
    line = event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "12746"}})
    assert parse(line, "").revision == 12746


@pytest.mark.parametrize("metadata", [None, {}, {"resourceVersion": 5}, {"resourceVersion": "x"}])
def test_an_object_that_doesnt_say_moves_the_watch_nowhere(metadata: object) -> None:
    assert parse(event("MODIFIED", {"metadata": metadata}), "").revision == 0


def test_an_error_event_keeps_its_status_and_message() -> None:
    line = event("ERROR", status(410, "Expired", "too old resource version: 1 (2)"))
    with pytest.raises(KubeError, match="too old resource version") as raised:
        parse(line, "Pod")
    assert raised.value.status == 410


def test_an_error_event_without_a_usable_code_is_the_servers_own_failure() -> None:
    with pytest.raises(KubeError) as raised:
        parse(event("ERROR", {"code": 200}), "Pod")
    assert raised.value.code is ErrorCode.KUBE_FAILED


@pytest.mark.parametrize(
    "line",
    [
        b"<html>",
        b'{"type": "ADDED", "object": {"metadata"',
        b"[]",
        b"null",
        b'"ADDED"',
        b"{}",
        b'{"type": "ADDED"}',
        b'{"type": "ADDED", "object": "x"}',
        b'{"type": "ADDED", "object": null}',
        b'{"type": "EXPLODED", "object": {}}',
        b'{"type": ["ADDED"], "object": {}}',
        b'{"type": "ERROR", "object": "x"}',
        b"\xff\xfe",
    ],
)
def test_what_the_api_server_cant_have_said_is_no_event(line: bytes) -> None:
    with pytest.raises(KubeError) as raised:
        parse(line, "Pod")
    assert (raised.value.code, raised.value.status) == (ErrorCode.KUBE_UNREACHABLE, 0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_no_line_raises_anything_else(line: bytes) -> None:
    try:
        parse(line, "Pod")
    except KubeError:
        pass
