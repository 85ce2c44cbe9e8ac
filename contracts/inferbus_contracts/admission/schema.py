"""From a document to its typed model, with every fault told in the platform's own words.

Invariant: each thing that doesn't fit the model becomes exactly one problem with the path of the
field, the value found there, and what to do.
"""

import difflib
import re
from collections.abc import Mapping
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from inferbus_contracts.admission.paths import join_path
from inferbus_contracts.admission.rule import told_value
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.resources.metadata import Resource

_WANTED_TYPES = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}
_RANGES = {
    "greater_than_equal": ("should be at least {ge}", "write {ge} or more"),
    "less_than_equal": ("should be at most {le}", "write {le} or less"),
    "string_too_long": ("should have at most {max_length} characters", "shorten it"),
    "string_too_short": ("should not be empty", "write a value, or remove the field"),
    "string_pattern_mismatch": ("should match {pattern}", "write it in that form"),
    "too_long": ("should have at most {max_length} items", "remove some"),
    "too_short": ("should have at least {min_length} items", "add some"),
    "enum": ("should be {expected}", "write one of them"),
}
"""Message and remedy for each of pydantic's faults."""

_QUOTED = re.compile(r"'([^']+)'")


def decode(model: type[Resource], document: Mapping[str, Any]) -> Resource:
    """The typed resource; raises `ProblemsError` with one problem for each fault."""
    try:
        return model.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise ProblemsError(*(_problem(model, detail) for detail in details)) from None


def _problem(model: type[Resource], detail: ErrorDetails) -> Problem:
    location = tuple(part for part in detail["loc"] if part != "[key]")
    field = join_path(location)
    kind, value = detail["type"], detail["input"]
    if kind == "missing":
        return Problem(
            code=ErrorCode.MISSING_FIELD,
            message="a required field is missing",
            field=field,
            remedy=f"add {location[-1]}",
        )
    if kind == "extra_forbidden":
        return _unknown_field(model, location, value)
    if kind in _WANTED_TYPES or kind == "wrong_type":
        return Problem(
            code=ErrorCode.WRONG_TYPE,
            message=_wrong_type(detail),
            field=field,
            value=told_value(value),
            remedy=_type_remedy(kind, value),
        )
    message, remedy = _out_of_range(detail)
    return Problem(
        code=ErrorCode.VALUE_OUT_OF_RANGE,
        message=message,
        field=field,
        value=told_value(value),
        remedy=remedy,
    )


def _unknown_field(model: type[Resource], location: tuple[str | int, ...], value: Any) -> Problem:
    name = str(location[-1])
    known = _field_names(model, location[:-1])
    near = nearest(name, known)
    return Problem(
        code=ErrorCode.UNKNOWN_FIELD,
        message=f"there is no field {name!r} here",
        field=join_path(location),
        value=told_value(value),
        remedy=f"did you mean {near}?" if near else f"remove it; known here: {', '.join(known)}",
    )


def _wrong_type(detail: ErrorDetails) -> str:
    wanted = _WANTED_TYPES.get(detail["type"])
    return f"should be {wanted}, not {json_type(detail['input'])}" if wanted else detail["msg"]


def _type_remedy(kind: str, value: Any) -> str:
    if kind == "string_type" and isinstance(value, bool | int | float):
        return "put the value in quotes"
    if kind in ("int_type", "bool_type") and isinstance(value, str):
        return "remove the quotes"
    return "write it in that form"


def _out_of_range(detail: ErrorDetails) -> tuple[str, str]:
    """Message and remedy."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind not in _RANGES:
        return detail["msg"], "correct the value"
    message, remedy = (text.format_map(context) for text in _RANGES[kind])
    if kind == "greater_than_equal" and context["ge"] == 0:
        message = "should be a non-negative integer"
    if kind == "enum" and isinstance(detail["input"], str):
        near = nearest(detail["input"], _QUOTED.findall(context["expected"]))
        remedy = f"did you mean {near}?" if near is not None else remedy
    return message, remedy


def nearest(word: str, known: list[str]) -> str | None:
    """The one of `known` that `word` most likely stands for, whatever its case."""
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[near[0]] if near else None


def json_type(value: Any) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    words = {str: "a string", int: "an integer", float: "a number", list: "a list"}
    return words.get(type(value), "a mapping")


def _field_names(model: type[BaseModel], location: tuple[str | int, ...]) -> list[str]:
    """Names of the fields at a place, sorted; empty where any name goes."""
    annotation: Any = model
    for part in location:
        annotation = _inside(_bare(annotation), part)
    annotation = _bare(annotation)
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return []
    return sorted(field.alias or name for name, field in annotation.model_fields.items())


def _inside(annotation: Any, part: str | int) -> Any:
    if get_origin(annotation) in (list, dict):
        return get_args(annotation)[-1]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            if part == (field.alias or name):
                return field.annotation
    return None


def _bare(annotation: Any) -> Any:
    """The type inside `Annotated[...]` and `... | None`."""
    if hasattr(annotation, "__metadata__"):
        return _bare(annotation.__origin__)
    members = [item for item in get_args(annotation) if item is not NoneType]
    if get_origin(annotation) not in (list, dict) and len(members) == 1:
        return _bare(members[0])
    return annotation
