"""Structural schemas: what they are made from, and what isn't one."""

import re
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from inferbus_contracts.manifests.forms import NOT_NEGATIVE, POSITIVE, QUANTITY
from inferbus_contracts.manifests.refinement import CelRule, Refinement
from inferbus_contracts.manifests.structural import explained, structural_schema
from inferbus_contracts.manifests.structural_faults import structural_faults
from inferbus_contracts.resources.document import ResourcePart
from inferbus_contracts.resources.scalars import (
    Count,
    Duration,
    Integer,
    IntOrPercent,
    Quantity,
    parse_quantity,
)

EITHER = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


class Colour(StrEnum):
    """A colour."""

    RED = "red"


class Part(ResourcePart):
    """A part (ruling F1)."""

    colour: Colour = Colour.RED
    least: Count | None = None
    """The `least`,
    of all (spec 1.2)."""


class Whole(ResourcePart):
    """A whole."""

    parts: list[Part] = Field(default_factory=list, max_length=3)
    by_name: dict[str, Part] = Field(default_factory=dict)
    only: Part | None = None
    free: dict[str, Any] | None = None
    anything: Any = None
    many: Integer = 0
    share: IntOrPercent = 1
    amount: Quantity
    pause: Duration = "1s"
    port: Annotated[int, Field(ge=1, le=2**32 - 1)] | None = None


SCHEMA = structural_schema(Whole, {})["properties"]
PART = {
    "description": "A part.",
    "type": "object",
    "properties": {
        "colour": {
            "description": "A colour.",
            "type": "string",
            "default": "red",
            "enum": ["red"],
        },
        "least": {
            "description": "The least, of all.",
            "type": "integer",
            "format": "int32",
            "minimum": 0,
            "maximum": 2**31 - 1,
        },
    },
}


@pytest.mark.parametrize(
    ("field", "schema"),
    [
        ("parts", {"type": "array", "maxItems": 3, "items": PART}),
        ("byName", {"type": "object", "additionalProperties": PART}),
        ("only", PART),
        ("free", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        ("anything", {"x-kubernetes-preserve-unknown-fields": True}),
        ("many", {"type": "integer", "format": "int64", "default": 0}),
        (
            "share",
            {**EITHER, "default": 1, "minimum": 0, "maximum": 2**31 - 1, "pattern": "^[0-9]+%$"},
        ),
        ("amount", {**EITHER, "pattern": QUANTITY}),
        ("port", {"type": "integer", "format": "int64", "minimum": 1, "maximum": 2**32 - 1}),
    ],
)
def test_a_field_becomes_what_kubernetes_demands(field: str, schema: dict[str, Any]) -> None:
    assert SCHEMA[field] == schema


def test_what_was_made_is_structural() -> None:
    assert list(structural_faults(structural_schema(Whole, {}))) == []


def test_a_refinement_goes_wherever_the_part_is() -> None:
    rule = CelRule("self.least\n  > 0", "more")
    refined = Refinement(fields={"least": {"minimum": 1}}, required=("least",), rules=(rule,))
    schema = structural_schema(Whole, {Part: refined})["properties"]
    for part in (
        schema["only"],
        schema["parts"]["items"],
        schema["byName"]["additionalProperties"],
    ):
        assert part["required"] == ["least"]
        assert part["properties"]["least"]["minimum"] == 1
        assert part["properties"]["colour"] == PART["properties"]["colour"]
        assert part["x-kubernetes-validations"] == [{"rule": "self.least > 0", "message": "more"}]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Zero (ruling F6) or `more`.", "Zero or more."),
        ("The host (RFC 1123).", "The host (RFC 1123)."),
        ("One\n    line (autoscaling spec 1.2; defect D1).", "One line."),
    ],
)
def test_texts_are_for_who_reads_them(text: str, plain: str) -> None:
    assert explained(text) == plain


@given(
    st.from_regex(
        re.compile(r"[+-]?([0-9]{1,5}\.?[0-9]{0,3}|\.[0-9]{1,3})([eE][+-]?[0-9]|Ki|[mkG])?", re.A),
        fullmatch=True,
    )
)
def test_forms_say_whether_a_quantity_is_above_zero(text: str) -> None:
    value: Fraction = parse_quantity(text)
    assert re.search(QUANTITY, text)
    assert bool(re.search(POSITIVE, text)) is (value > 0)
    assert bool(re.search(NOT_NEGATIVE, text)) is (value >= 0)


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({}, "schema: has no type"),
        ({"type": "text"}, "schema: has no type"),
        ({"type": "null"}, "schema: has no type"),
        ({"$ref": "#/a", "type": "object"}, "schema: $ref has no place in a structural schema"),
        ({"type": "object", "definitions": {}}, "schema: definitions has no place"),
        ({"type": "object", "nullable": True, "const": 1}, "schema: const has no place"),
        ({"type": "string", **EITHER}, "schema: an int-or-string has no type"),
        (
            {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}},
            "schema: has both properties and additionalProperties",
        ),
        (
            {"type": "object", "additionalProperties": False},
            "schema: additionalProperties is no schema",
        ),
        ({"type": "array"}, "schema: arrays, and they alone, have items"),
        ({"type": "string", "items": {"type": "string"}}, "schema: arrays, and they alone"),
        ({"type": "string", "pattern": "("}, "schema: the pattern '(' doesn't compile"),
        ({"type": "object", "required": ["a"]}, "schema: a is required and isn't a property"),
        (
            {"type": "object", "properties": {"a": {"properties": {"b": {"type": "string"}}}}},
            ".a: has fields and isn't an object",
        ),
        (
            {"type": "object", "anyOf": [{"type": "string"}]},
            "schema: type stands in anyOf",
        ),
        (
            {"type": "object", "not": {"additionalProperties": {}}},
            "schema: additionalProperties stands in not",
        ),
        (
            {"type": "array", "items": {"type": "string", "default": 1}},
            "[]: the default 1 is of another type",
        ),
        ({"type": "integer", "default": True}, "schema: the default True is of another type"),
        (
            {"type": "string", "enum": ["a"], "default": "b"},
            "schema: the default 'b' isn't among its values",
        ),
        (
            {"type": "object", "default": {"a": 1}},
            "schema: the default holds a, which isn't a property",
        ),
        (
            {"type": "object", "x-kubernetes-list-type": "set"},
            "schema: only an array has a list type",
        ),
        (
            {
                "type": "array",
                "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a"],
            },
            "schema: the key a is neither required nor has it a default",
        ),
        (
            {
                "type": "array",
                "items": {"type": "object"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a"],
            },
            "schema: the key a is no scalar field of the items",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map"},
            "schema: lists that are maps, and they alone, have keys",
        ),
        (
            {"type": "string", "x-kubernetes-map-type": "atomic"},
            "schema: only an object has a map type",
        ),
    ],
)
def test_what_is_not_structural_is_told_with_its_place(schema: dict[str, Any], fault: str) -> None:
    assert any(told.startswith(fault) for told in structural_faults(schema))
