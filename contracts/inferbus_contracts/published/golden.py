"""Golden documents: events and objects as they once were written, which are read for ever.

Invariant: a golden event is parsed by today's model and encodes to the bytes it was written with, a
golden object is admitted unchanged. What breaks that would rewrite the log, or announce every
stored object anew. Pure.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from inferbus_contracts.admission import admit
from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.catalog import EVENTS
from inferbus_contracts.envelope import TYPE_PREFIX, event_id, parse_headers
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.published.coverage import uncovered_fields
from inferbus_contracts.published.difference import first_difference
from inferbus_contracts.published.schemas import (
    EVENT_VERSION,
    Schema,
    event_path,
    resource_path,
)
from inferbus_contracts.resources.kinds import KINDS

OBJECTS = "objects/"
"""The folder of golden objects; a golden event is in a folder named by its type and version."""

BODY, HEADERS = ".json", ".headers.json"
LEAST = ("minimal", "full")
"""The names each event and each kind has at least."""

_ADD = "add one with `python -m inferbus_contracts.add_golden`"
_BACK = "put it back as it was"
_KEEP = "accept what was accepted once, or make it a new type"
_ABSENT = "let a new field be absent (None) by default"

Files = Mapping[str, bytes]


def event_folder(event_type: str) -> str:
    """Where the golden events of a type are."""
    return f"{event_type}.v{EVENT_VERSION}"


def object_folder(token: str) -> str:
    """Where the golden objects of a kind are."""
    return f"{OBJECTS}{token}"


def as_file(document: bytes) -> bytes:
    """The content of the file that holds a document: its canonical bytes and a line's end."""
    return document + b"\n"


def golden_faults(files: Files, schemas: Mapping[str, Schema]) -> list[str]:
    """What is wrong with the golden documents, by path below their folder; one line each."""
    found: list[str] = []
    documents: dict[str, Any] = {}
    for path, data in sorted(files.items()):
        try:
            document = json.loads(data)
            found += (f"{path}: {text}" for text in _faults(path, data, document, files))
        except ValueError as error:
            found.append(f"{path}: {error}; {_BACK}")
        else:
            documents[path] = document
    return [*found, *_missing(files), *_uncovered(documents, schemas)]


def _faults(path: str, data: bytes, document: Any, files: Files) -> Iterator[str]:
    folder = path.rpartition("/")[0]
    if path.endswith(HEADERS):
        if path.removesuffix(HEADERS) + BODY not in files:
            yield "there is no event to these headers"
    elif data != as_file(canonical_json(document)):
        yield f"isn't canonical JSON with one line's end; {_BACK}"
    elif folder.startswith(OBJECTS):
        yield from _object_faults(document)
    else:
        yield from _event_faults(folder, data)
        yield from _header_faults(folder, files.get(path.removesuffix(BODY) + HEADERS))


def _event_faults(folder: str, data: bytes) -> Iterator[str]:
    event = EVENTS.get(folder.removesuffix(f".v{EVENT_VERSION}"))
    if event is None:
        yield f"no event of this type and version is in the catalog any more; {_KEEP}"
        return
    try:
        again = event.data.from_json(data).to_json()
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        yield f"is no longer read: {place}: {first['msg']}; {_KEEP}"
        return
    if as_file(again) != data:
        told = first_difference(json.loads(data), json.loads(again))
        yield f"encodes to other bytes: {told}; {_ABSENT}"


def _header_faults(folder: str, data: bytes | None) -> Iterator[str]:
    if data is None:
        yield "has no headers beside it"
        return
    headers = json.loads(data)
    envelope = parse_headers(headers)
    if headers["ce-type"] != f"{TYPE_PREFIX}{folder}":
        yield f"its headers are those of {headers['ce-type']}"
    if envelope.headers() != headers:
        yield f"its headers come back changed: {first_difference(headers, envelope.headers())}"
    if envelope.causation_id:
        expected = event_id(envelope.type, envelope.key, envelope.causation_id)
        if envelope.id != expected:
            yield f"an event that follows from its cause has the id {expected} now"


def _object_faults(document: Any) -> Iterator[str]:
    try:
        admitted = admit(document).object
    except ProblemsError as error:
        yield f"is no longer admitted: {error.problems[0]}; {_KEEP}"
        return
    if admitted != document:
        yield f"is admitted changed: {first_difference(document, admitted)}; {_ABSENT}"


def _missing(files: Files) -> Iterator[str]:
    for folder in _folders():
        for name in LEAST:
            if f"{folder}/{name}{BODY}" not in files:
                yield f"{folder}/{name}{BODY}: is missing; {_ADD}"


def _uncovered(documents: Mapping[str, Any], schemas: Mapping[str, Schema]) -> Iterator[str]:
    shown = [
        (schemas[schema], document)
        for folder, schema in _folders().items()
        for path, document in documents.items()
        if path.startswith(f"{folder}/") and not path.endswith(HEADERS)
    ]
    for field in uncovered_fields(shown):
        yield f"*: no golden document holds {field}; {_ADD}"


def _folders() -> dict[str, str]:
    """The schema of what is in each folder."""
    events = {event_folder(type_): event_path(type_) for type_ in EVENTS}
    objects = {
        object_folder(token): resource_path(kind)
        for token, kind in KINDS.items()
        if not kind.supporting
    }
    return events | objects
