"""What was written once is read for ever: each way of losing that is noticed."""

import dataclasses
import json
from pathlib import Path

import pytest

from inferbus_contracts.add_golden import add, golden_event, golden_object, main
from inferbus_contracts.base import EventData
from inferbus_contracts.catalog import EVENTS
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.events.scaling import Woken
from inferbus_contracts.published.coverage import uncovered_fields
from inferbus_contracts.published.files import CONTRACTS, read_published
from inferbus_contracts.published.golden import golden_faults
from inferbus_contracts.published.schemas import published_schemas

GOLDEN = {
    path.removeprefix("golden/"): data
    for path, data in read_published(CONTRACTS).items()
    if path.startswith("golden/")
}
DECIDED = "scaling.decided.v1/full.json"
HEADERS = "scaling.decided.v1/full.headers.json"
SERVING = "objects/ModelServing/full.json"


def faults(changes: dict[str, bytes | None]) -> list[str]:
    """What is said when some golden files have other contents, or are gone (None)."""
    files = {path: data for path, data in (GOLDEN | changes).items() if data is not None}
    return golden_faults(files, published_schemas())


def edited(path: str, **values: object) -> bytes:
    """A golden file with some fields set, canonical as before."""
    document = json.loads(GOLDEN[path]) | values
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"{text}\n".encode()


def test_todays_code_reads_everything_that_was_written() -> None:
    assert faults({}) == []


@pytest.mark.parametrize(
    ("path", "data", "said"),
    [
        (DECIDED, edited(DECIDED, desired="many"), "is no longer read: desired: "),
        (
            DECIDED,
            edited(DECIDED, forgotten=1),
            "encodes to other bytes: forgotten is absent, was 1",
        ),
        (DECIDED, edited(DECIDED, mode=None), "is no longer read: mode"),
        (DECIDED, GOLDEN[DECIDED].replace(b":", b": ", 1), "isn't canonical JSON"),
        (DECIDED, GOLDEN[DECIDED].rstrip(), "isn't canonical JSON"),
        (DECIDED, b"{", "Expecting property name"),
        (HEADERS, edited(HEADERS, **{"ce-id": "other"}), "headers come back changed"),
        (HEADERS, edited(HEADERS, **{"ce-type": "x"}), "ce-type 'x' is not"),
        (HEADERS, edited(HEADERS, **{"ce-subject": "A/b/c"}), "has the id"),
        (HEADERS, None, "has no headers beside it"),
        (SERVING, edited(SERVING, spec={}), "is no longer admitted: "),
        (SERVING, edited(SERVING, status={}), "is admitted changed: status is absent, was {}"),
    ],
)
def test_a_golden_document_that_is_not_what_it_was_is_told(
    path: str, data: bytes | None, said: str
) -> None:
    assert any(said in line for line in faults({path: data}))


def test_headers_of_another_type_are_told() -> None:
    other = GOLDEN["scaling.allocated.v1/full.headers.json"]
    assert any(
        "are those of dev.inferbus.scaling.allocated.v1" in x for x in faults({HEADERS: other})
    )


def test_headers_without_an_event_are_told() -> None:
    said = faults({DECIDED: None})
    assert f"{HEADERS}: there is no event to these headers" in said
    assert any(line.startswith(f"{DECIDED}: is missing") for line in said)


def test_a_type_that_is_gone_from_the_catalog_is_told() -> None:
    assert any(
        "in the catalog any more" in line for line in faults({"old.fact.v1/full.json": b"{}\n"})
    )


def test_a_field_that_no_golden_document_holds_is_told() -> None:
    said = faults({"model.progressed.v1/full.json": GOLDEN["model.progressed.v1/minimal.json"]})
    (line,) = [line for line in said if "bytesTotal" in line]
    assert line.startswith("*: no golden document holds ModelProgressed.bytesTotal; add one with")


SCHEMA = {
    "type": "object",
    "title": "Thing",
    "properties": {
        "name": {"type": "string"},
        "part": {"anyOf": [{"$ref": "#/$defs/Part"}, {"type": "null"}]},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}},
        "by_name": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Part"}},
        "status": {"type": "object", "readOnly": True},
    },
    "$defs": {"Part": {"type": "object", "title": "Part", "properties": {"kind": {}}}},
}


@pytest.mark.parametrize(
    ("document", "missing"),
    [
        ({}, {"Thing.name", "Thing.part", "Thing.parts", "Thing.by_name", "Part.kind"}),
        ({"name": "a", "part": {"kind": 1}}, {"Thing.parts", "Thing.by_name"}),
        ({"parts": [{}, {"kind": 1}]}, {"Thing.name", "Thing.part", "Thing.by_name"}),
        ({"by_name": {"a": {"kind": None}}}, {"Thing.name", "Thing.part", "Thing.parts"}),
        ({"part": None, "other": 1}, {"Thing.name", "Thing.parts", "Thing.by_name", "Part.kind"}),
    ],
)
def test_fields_that_no_document_shows(document: dict[str, object], missing: set[str]) -> None:
    assert set(uncovered_fields([(SCHEMA, document)])) == missing


def test_a_shared_part_is_shown_by_whichever_document_holds_it() -> None:
    other = {"type": "object", "title": "Other", "properties": {"part": {"$ref": "#/$defs/Part"}}}
    other["$defs"] = SCHEMA["$defs"]
    shown = [(SCHEMA, {}), (other, {"part": {"kind": 1}})]
    assert "Part.kind" not in uncovered_fields(shown)
    assert "Thing.part" in uncovered_fields(shown)


def test_a_field_with_a_default_shows_in_old_events_and_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such a field would rewrite what stands in the log; one that is absent by default doesn't."""

    class Talkative(Woken):
        mood: str = "good"

    class Modest(Woken):
        mood: str | None = None

    def said_with(data: type[EventData]) -> list[str]:
        row = dataclasses.replace(EVENTS["woken.autoscaler"], data=data)
        monkeypatch.setitem(EVENTS, "woken.autoscaler", row)
        return faults({})

    assert any(
        "encodes to other bytes: mood is good, was absent" in x for x in said_with(Talkative)
    )
    assert not any("encodes to other bytes" in line for line in said_with(Modest))


def test_a_golden_event_is_written_once(tmp_path: Path) -> None:
    files = golden_event("woken.autoscaler", "least", "A/b/c", "", b'{"dueMs": 5}')
    assert add(tmp_path, files).count("wrote ") == 2
    assert (tmp_path / "golden/woken.autoscaler.v1/least.json").read_bytes() == (
        b'{"dueMs":5,"reason":""}\n'
    )
    with pytest.raises(ProblemsError, match="written once") as raised:
        add(tmp_path, files)
    assert raised.value.problems[0].code is ErrorCode.ALREADY_EXISTS


def test_what_was_added_is_whole() -> None:
    added = golden_event("woken.autoscaler", "more", "A/b/c/d", "cause", b'{"dueMs": 5}')
    added |= golden_object("more", json.loads(GOLDEN[SERVING]))
    assert faults({path.removeprefix("golden/"): data for path, data in added.items()}) == []


@pytest.mark.parametrize(
    ("key", "body", "said"),
    [
        ("A/b/c", b"{}", "dueMs"),
        ("A/b/c", b"[", "Invalid JSON"),
        ("chat", b'{"dueMs": 5}', "no key"),
    ],
)
def test_what_does_not_fit_is_not_added(key: str, body: bytes, said: str) -> None:
    with pytest.raises(ProblemsError, match=said):
        golden_event("woken.autoscaler", "least", key, "", body)


def test_the_command_reads_an_event_or_a_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    event = ["more", "--type", "woken.optimizer", "--key", "A/b/c", "--cause", "i"]
    assert main(event, b'{"dueMs": 5}', tmp_path) == 0
    assert main(["more"], GOLDEN[SERVING], tmp_path) == 0
    assert capsys.readouterr().out.splitlines() == [
        "wrote golden/woken.optimizer.v1/more.json",
        "wrote golden/woken.optimizer.v1/more.headers.json",
        "wrote golden/objects/ModelServing/more.json",
    ]


@pytest.mark.parametrize(
    ("words", "body", "said"),
    [
        (["x", "--type", "no.such"], b"{}", "there is no event type no.such"),
        (["x"], b"{", "standard input is no JSON"),
        (["x"], b"{}", "apiVersion"),
    ],
)
def test_the_command_tells_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], body: bytes, said: str
) -> None:
    assert main(words, body, tmp_path) == 1
    assert said in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
