"""Admission of documents that nobody wrote: it never breaks, and settles at once."""

import json
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from contracts.tests.conftest import build
from inferbus_contracts.admission import admit
from inferbus_contracts.admission.defaults import with_defaults
from inferbus_contracts.admission.paths import join_path, split_path
from inferbus_contracts.admission.schema import decode
from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.errors import Problem, ProblemsError
from inferbus_contracts.resources.kinds import KINDS
from inferbus_contracts.resources.scalars import Duration, IntOrPercent, Quantity

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
WORDS = st.sampled_from(["a", "b", "server", "prefill", "decode"])
CONTAINERS = {"containers": [{"name": "model-runner", "image": "i"}]}
PODS = st.just({"spec": CONTAINERS, **CONTAINERS})
TEXTS = {
    "^(hf|s3|pvc|obs|ms)://.+": st.sampled_from(["hf://org/m", "s3://b/k"]),
    "^(hostpath|pvc)://.+": st.sampled_from(["hostpath:///tmp", "pvc://claim"]),
    "^https://.+": st.just("https://api.example.com"),
    "^BuiltIn$": st.just("BuiltIn"),
}
SCALARS = {
    Quantity: st.sampled_from(["500m", "1Gi", 10, 0.5, "1e3"]),
    Duration: st.sampled_from(["0s", "15s", "1m30s", "500ms"]),
    IntOrPercent: st.sampled_from([0, 1, "0%", "25%", "100%"]),
}


@cache
def documents(model: type[BaseModel]) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings that a model can read, most of its fields left out."""
    required, optional = {}, {}
    for name, field in model.model_fields.items():
        chosen = required if field.is_required() else optional
        chosen[field.alias or name] = st.deferred(lambda field=field: _field(field))
    return st.fixed_dictionaries(required, optional=optional)


def _field(field: FieldInfo) -> st.SearchStrategy[Any]:
    for scalar, strategy in SCALARS.items():
        if get_args(scalar)[0] == field.annotation and get_args(scalar)[1] in field.metadata:
            return strategy
    for item in field.metadata:
        if getattr(item, "pattern", None) in TEXTS:
            return TEXTS[item.pattern]
    least = max((getattr(item, "min_length", 0) for item in field.metadata), default=0)
    return _values(field.annotation, least)


def _values(annotation: Any, least: int = 0) -> st.SearchStrategy[Any]:
    for scalar, strategy in SCALARS.items():
        if annotation == scalar:
            return strategy
    if hasattr(annotation, "__metadata__"):
        return _values(annotation.__origin__, least)
    origin, members = get_origin(annotation), get_args(annotation)
    if origin is list:
        return st.lists(_values(members[0]), min_size=least, max_size=max(least, 2))
    if origin is dict:
        values = PODS if members[1] is Any else _values(members[1])
        return (
            values
            if members[1] is Any
            else st.dictionaries(WORDS, values, min_size=least, max_size=2)
        )
    if members:
        return st.one_of([_values(item) for item in members if item is not NoneType])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return documents(annotation)
    if isinstance(annotation, type) and hasattr(annotation, "__members__"):
        return st.sampled_from([member.value for member in annotation])
    simple = {str: WORDS, int: st.integers(1, 3), bool: st.booleans()}
    return simple.get(annotation, JSON)


OWN_KINDS = [token for token, kind in KINDS.items() if not kind.supporting]


def drawn(token: str, data: st.DataObject) -> dict[str, Any]:
    """An object of a kind: the least one, with anything beside or instead."""
    spec = data.draw(documents(KINDS[token].model.model_fields["spec"].annotation))
    written = build(token)
    _merge(written["spec"], spec)
    return written


@pytest.mark.parametrize("token", OWN_KINDS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_an_admitted_object_admits_to_itself(token: str, data: st.DataObject) -> None:
    written = drawn(token, data)
    try:
        normalised = _normalised(token, written)
        assert _normalised(token, normalised) == normalised
        first = admit(written)
    except ProblemsError:
        return
    again = admit(json.loads(canonical_json(first.object)))
    assert canonical_json(again.object) == canonical_json(first.object)
    assert again.warnings == first.warnings
    assert again.resource == first.resource


def _normalised(token: str, written: dict[str, Any]) -> dict[str, Any]:
    """What admission makes of a document, whatever its rules say about it."""
    kind = KINDS[token]
    return with_defaults(kind, decode(kind.model, written).to_dict())


def _merge(document: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(document.get(key), dict):
            _merge(document[key], value)
        else:
            document[key] = value


@pytest.mark.parametrize("token", OWN_KINDS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_whatever_stands_anywhere_is_admitted_or_told(
    document, token: str, data: st.DataObject
) -> None:
    written = document(token)
    places = list(_places(written))
    around, last = data.draw(st.sampled_from(places))
    around[last] = data.draw(JSON)
    assert all(str(problem) and problem.remedy for problem in _told(written))


def _told(written: dict[str, Any]) -> tuple[Problem, ...]:
    try:
        return admit(written).warnings
    except ProblemsError as error:
        return error.problems


def _places(value: Any):
    """Every (container, key) of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


@given(st.lists(st.text(min_size=1) | st.integers(0, 10**6)))
def test_paths_are_read_as_they_were_written(parts: list) -> None:
    assert split_path(join_path(parts)) == tuple(parts)


@pytest.mark.parametrize("path", ["a..b", "a[", "a[-1]", "[x]", "a b", '["a'])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="no path"):
        split_path(path)
