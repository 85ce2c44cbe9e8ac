"""Which files of a folder count, and which objects go with what they left out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.api.objects import AppliedDocument
from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.policy_folder import (
    Look,
    Manifests,
    defined_elsewhere,
    is_left_out,
    is_settled,
    marked,
)
from inferbus_spec_watcher.rejections import tells_mistakes

INTERVAL_MS = 1000
NOW_MS = 1_700_000_000_000
A = ObjectKey("OpenModel", "_", "a")


def look(changed_at_ms: int = NOW_MS, size: int = 1, inode: int = 1) -> Look:
    return Look(changed_at_ms * 1_000_000, size, inode)


@pytest.mark.parametrize(
    ("now", "before", "settled"),
    [
        (look(NOW_MS - INTERVAL_MS), None, True),
        (look(NOW_MS - INTERVAL_MS + 1), None, False),
        (look(), look(), True),
        (look(), look(size=2), False),
        (look(), look(inode=2), False),
        (look(), look(NOW_MS - 1), False),
        (look(NOW_MS + 3_600_000), None, False),
        (look(NOW_MS + 3_600_000), look(NOW_MS + 3_600_000), True),
    ],
)
def test_a_file_counts_once_nobody_writes_it(now: Look, before: Look | None, settled: bool) -> None:
    assert is_settled(now, before, NOW_MS, INTERVAL_MS) is settled


@given(st.lists(st.integers(1, INTERVAL_MS - 1), min_size=1))
def test_a_file_written_in_every_interval_never_counts(pauses_ms: list[int]) -> None:
    before, now_ms = None, NOW_MS
    for size, pause_ms in enumerate(pauses_ms):
        seen = look(now_ms, size)
        assert not is_settled(seen, before, now_ms + pause_ms, INTERVAL_MS)
        before, now_ms = seen, now_ms + pause_ms


def test_a_document_is_marked_with_its_file_and_stays_as_it_was() -> None:
    body = {"kind": "OpenModel", "metadata": {"name": "a", "annotations": {"team": "x"}}}
    document = AppliedDocument(object=body, file="a.yaml:1")
    annotations = marked(document, "a.yaml").object["metadata"]["annotations"]
    assert annotations == {"team": "x", "inferbus.dev/manifest": "a.yaml"}
    assert document.object["metadata"]["annotations"] == {"team": "x"}


def test_an_object_of_another_file_is_told_with_both_files() -> None:
    (problem,) = defined_elsewhere("b.yaml", [A], {"a.yaml": {A}, "b.yaml": {A}})
    assert (problem.code, problem.file, problem.object) == (
        ErrorCode.DUPLICATE_NAME,
        "b.yaml",
        str(A),
    )
    assert "a.yaml" in problem.message
    assert defined_elsewhere("a.yaml", [A], {"a.yaml": {A}}) == []


def stored(*managers: str, origin: str | None = "a.yaml") -> StoredObject:
    fields = [{"manager": one, "fields": ["/spec/x"]} for one in managers]
    metadata: dict[str, Any] = {"name": "a", "managedFields": fields}
    if origin is not None:
        metadata["annotations"] = {"inferbus.dev/manifest": origin}
    return StoredObject({"metadata": metadata}, 1)


@pytest.mark.parametrize(
    ("stored", "defined", "unread", "goes"),
    [
        (stored("folder"), set(), set(), True),
        (stored("folder", "scale", "spec-watcher"), set(), set(), True),
        (stored("folder"), {A}, set(), False),
        (stored("folder"), set(), {"a.yaml"}, False),
        (stored("folder"), set(), {"b.yaml"}, True),
        (stored("folder", "cli"), set(), set(), False),
        (stored("cli"), set(), set(), False),
        (stored("expander"), set(), set(), False),
        (stored("folder", origin=None), set(), set(), False),
    ],
)
def test_what_came_from_the_folder_and_stands_in_no_file_goes(
    stored: StoredObject, defined: set[ObjectKey], unread: set[str], goes: bool
) -> None:
    assert is_left_out(Manifests(frozenset(defined), unread), A, stored) is goes


@pytest.mark.parametrize(
    ("codes", "tells"),
    [
        ([ErrorCode.UNKNOWN_FIELD], True),
        ([ErrorCode.BUS_FULL], False),
        ([ErrorCode.CONFLICT, ErrorCode.ALREADY_EXISTS], False),
        ([ErrorCode.BUS_TIMEOUT, ErrorCode.FIELD_OWNED_BY_OTHER], True),
    ],
)
def test_only_mistakes_in_documents_are_rejections(codes: list[ErrorCode], tells: bool) -> None:
    problems = [Problem(code=code, message="m") for code in codes]
    assert tells_mistakes(problems) is tells
