"""What breaks readers is listed with its path; what doesn't is not."""

import copy
import itertools
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from inferbus_contracts.published.compatibility import breaking_changes, judged_both_ways
from inferbus_contracts.published.schemas import published_schemas

EVENT = "events/thing.happened.v1.json"
REPLY = "api/things.get.reply.json"
REQUEST = "api/things.get.request.json"
RESOURCE = "resources/Thing.json"
BOTH_WAYS = [EVENT, REPLY]
ONE_WAY = [REQUEST, RESOURCE]

OLD: dict[str, Any] = {
    "type": "object",
    "title": "Thing",
    "required": ["name", "part"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^[a-z]+$"},
        "count": {"type": "integer", "minimum": 0, "maximum": 9, "default": 0},
        "load": {"type": "number", "default": 1.5},
        "mode": {"$ref": "#/$defs/Mode", "default": "on"},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "input": {"type": "object", "additionalProperties": True},
        "words": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "part": {"$ref": "#/$defs/Part"},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}},
        "value": {"default": None},
    },
    "$defs": {
        "Mode": {"type": "string", "enum": ["on", "off"]},
        "Part": {
            "type": "object",
            "title": "Part",
            "required": ["kind"],
            "properties": {"kind": {"const": "x"}, "part": {"$ref": "#/$defs/Part"}},
        },
    },
}


def changed(*changes: tuple[str, Any]) -> dict[str, Any]:
    """`OLD` with values set at paths; `...` removes what is there."""
    schema = copy.deepcopy(OLD)
    for path, value in changes:
        *around, last = path.split("/")
        place: Any = schema
        for part in around:
            place = place[part]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return schema


def told(path: str, new: dict[str, Any]) -> list[str]:
    return breaking_changes({path: OLD}, {path: new})


Changes = list[tuple[str, Any]]

BREAKING: dict[str, tuple[str, Changes]] = {
    "a field is gone": ("count: is gone", [("properties/count", ...)]),
    "a field deep inside is gone": ("part.kind", [("$defs/Part/properties/kind", ...)]),
    "a field is renamed": (
        "count: is gone",
        [("properties/count", ...), ("properties/number", {"type": "integer"})],
    ),
    "another type": ("count: new readers take string", [("properties/count/type", "string")]),
    "a number is whole now": ("load: ", [("properties/load/type", "integer")]),
    "null is refused": ("limit: ", [("properties/limit", {"type": "integer", "default": None})]),
    "anything becomes something": ("value: ", [("properties/value/type", "string")]),
    "it is required": ("count: new readers require it", [("required", ["name", "part", "count"])]),
    "a word is gone": ("mode: new readers refuse the value 'off'", [("$defs/Mode/enum", ["on"])]),
    "words where any text went": (
        "words[]: new readers take certain values only",
        [("properties/words/items/enum", ["a"])],
    ),
    "another fixed value": ("part.kind: ", [("$defs/Part/properties/kind/const", "y")]),
    "a higher least": ("count: new readers have minimum 1", [("properties/count/minimum", 1)]),
    "a lower most": ("count: new readers have maximum 8", [("properties/count/maximum", 8)]),
    "a bound where none was": ("load: ", [("properties/load/maximum", 100)]),
    "shorter texts": ("name: new readers have maxLength 8", [("properties/name/maxLength", 8)]),
    "longer lists": ("words: new readers have minItems 2", [("properties/words/minItems", 2)]),
    "another form": ("name: new readers demand", [("properties/name/pattern", "^[a-y]+$")]),
    "another meaning of nothing": (
        "count: default was 0 and is 1",
        [("properties/count/default", 1)],
    ),
    "another type of map": (
        "labels.*: ",
        [("properties/labels/additionalProperties", {"type": "integer"})],
    ),
    "a free map is closed": ("input.*: ", [("properties/input/additionalProperties", False)]),
    "items of another type": ("words[]: ", [("properties/words/items/type", "integer")]),
}

HARMLESS: dict[str, Changes] = {
    "nothing": [],
    "other texts": [("description", "x"), ("properties/name/description", "y"), ("title", "T")],
    "a new optional field": [("properties/more", {"type": "string"})],
    "a new optional part": [
        ("$defs/More", {"type": "object", "title": "More", "required": ["x"]}),
        ("properties/more", {"$ref": "#/$defs/More"}),
    ],
    "its map may hold anything": [("properties/input/additionalProperties", {})],
    "a word's type under another name": [
        ("$defs/Choice", {"type": "string", "enum": ["off", "on"]}),
        ("properties/mode", {"$ref": "#/$defs/Choice", "default": "on"}),
    ],
}

WIDER: dict[str, tuple[str, Changes]] = {
    "a new word": (
        "mode: old readers refuse the value 'auto'",
        [("$defs/Mode/enum", ["on", "off", "auto"])],
    ),
    "a lower least": ("count: old readers have minimum 0", [("properties/count/minimum", -1)]),
    "no most any more": ("count: old readers have maximum 9", [("properties/count/maximum", ...)]),
    "any form": ("name: old readers demand", [("properties/name/pattern", ...)]),
    "whole numbers become any": (
        "count: old readers take integer",
        [("properties/count/type", "number")],
    ),
    "no longer always written": ("name: old readers require it", [("required", ["part"])]),
    "null where none was": (
        "load: old readers take number, not null",
        [("properties/load", {"anyOf": [{"type": "number"}, {"type": "null"}], "default": 1.5})],
    ),
}


@pytest.mark.parametrize("path", [*BOTH_WAYS, *ONE_WAY])
@pytest.mark.parametrize("name", BREAKING)
def test_what_new_readers_misread_is_told_with_its_place(path: str, name: str) -> None:
    expected, changes = BREAKING[name]
    assert any(line.startswith(f"{path}: {expected}") for line in told(path, changed(*changes)))


@pytest.mark.parametrize("path", [*BOTH_WAYS, *ONE_WAY])
@pytest.mark.parametrize("name", HARMLESS)
def test_what_breaks_nobody_is_not_told(path: str, name: str) -> None:
    assert told(path, changed(*HARMLESS[name])) == []


@pytest.mark.parametrize("path", BOTH_WAYS)
@pytest.mark.parametrize("name", WIDER)
def test_what_old_readers_misread_is_told_where_nobody_could_be_told(path: str, name: str) -> None:
    expected, changes = WIDER[name]
    assert [line.startswith(f"{path}: {expected}") for line in told(path, changed(*changes))] == [
        True
    ]


@pytest.mark.parametrize("path", ONE_WAY)
@pytest.mark.parametrize("name", WIDER)
def test_what_is_refused_openly_may_grow(path: str, name: str) -> None:
    assert told(path, changed(*WIDER[name][1])) == []


POOL = [*HARMLESS.values(), *(changes for _, changes in (BREAKING | WIDER).values())]
PART = st.fixed_dictionaries({"kind": st.just("x")})
WRITTEN = st.fixed_dictionaries(
    {"name": st.from_regex("^[a-z]{1,9}$", fullmatch=True), "part": PART},
    optional={
        "count": st.integers(0, 9),
        "load": st.floats(allow_nan=False, allow_infinity=False),
        "mode": st.sampled_from(["on", "off"]),
        "limit": st.none() | st.integers(),
        "labels": st.dictionaries(st.text(), st.text(), max_size=2),
        "input": st.dictionaries(st.text(), st.integers() | st.text(), max_size=2),
        "words": st.lists(st.text(), min_size=1, max_size=3),
        "parts": st.lists(PART, max_size=2),
        "value": st.none() | st.integers() | st.lists(st.text(), max_size=1),
    },
)


@given(st.lists(st.sampled_from(POOL), max_size=3), WRITTEN)
def test_where_nothing_is_told_a_new_reader_takes_what_was_written(
    changes: list[Changes], document: dict[str, Any]
) -> None:
    assert Draft202012Validator(OLD).is_valid(document)
    try:
        new = changed(*itertools.chain.from_iterable(changes))
    except KeyError:
        reject()
    if not told(RESOURCE, new):
        assert Draft202012Validator(new).is_valid(document)


def test_a_strict_reader_refuses_what_it_does_not_know() -> None:
    strict = changed(("additionalProperties", False))
    without = changed(("additionalProperties", False), ("properties/count", ...))
    (line,) = breaking_changes({RESOURCE: strict}, {RESOURCE: without})
    assert line == f"{RESOURCE}: count: new readers refuse it"


def test_a_schema_that_is_gone_is_told_and_a_new_one_is_not() -> None:
    (line,) = breaking_changes({EVENT: OLD}, {REPLY: OLD})
    assert line.startswith(f"{EVENT}: is gone")


def test_a_change_in_a_shared_part_is_told_once_a_document() -> None:
    new = changed(("$defs/Part/properties/kind/const", "y"))
    assert len(told(RESOURCE, new)) == 1


def test_what_stands_in_the_log_is_judged_both_ways() -> None:
    judged = {path.partition("/")[0]: judged_both_ways(path) for path in published_schemas()}
    assert judged["events"]
    assert not judged["resources"]
    assert judged_both_ways(REPLY)
    assert not judged_both_ways(REQUEST)


def test_todays_schemas_break_nothing_of_themselves() -> None:
    schemas = published_schemas()
    assert breaking_changes(schemas, copy.deepcopy(schemas)) == []
