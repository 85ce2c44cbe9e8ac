"""Members of a JSON object set and removed in its bytes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.json_members import JsonMembers

NAMES = st.sampled_from(["stream", "max_tokens", "prompt", "a", "b"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
PAIRS = st.lists(st.tuples(NAMES, VALUES), max_size=6)
SPACES = st.text(" \t\r\n", max_size=3)


def spelled(pairs: list[tuple[str, Any]], space: str) -> bytes:
    """An object with these members, in their order, some of them twice."""
    members = (f"{json.dumps(name)}{space}:{space}{json.dumps(value)}" for name, value in pairs)
    inside = f"{space},{space}".join(members)
    return f"{space}{{{space}{inside}{space}}}{space}".encode()


@given(PAIRS, SPACES, st.dictionaries(NAMES, VALUES, max_size=3), st.sets(NAMES, max_size=3))
def test_the_result_differs_in_the_named_members_alone(
    pairs: list[tuple[str, Any]], space: str, members: dict[str, Any], removed: set[str]
) -> None:
    removed -= members.keys()
    raw = spelled(pairs, space)
    values = {name: json.dumps(value).encode() for name, value in members.items()}
    result = JsonMembers(raw).changed(values, removed)

    expected = {name: value for name, value in pairs if name not in removed}
    assert json.loads(result) == expected | members


def test_what_is_not_named_stays_byte_for_byte() -> None:
    raw = b'{ "seed" : 12345678901234567890.50, "stream":true , "x":"\\u00e9 \\"stream\\":1"}'

    assert JsonMembers(raw).changed({"max_tokens": b"1"}, ("stream",)) == (
        b'{"max_tokens":1, "seed" : 12345678901234567890.50 , "x":"\\u00e9 \\"stream\\":1"}'
    )


@pytest.mark.parametrize(
    ("raw", "result"),
    [
        (b"{}", b'{"n":1}'),
        (b'{"stream":true}', b'{"n":1}'),
        (b'{"n":5}', b'{"n":1}'),
        (b'{"\\u006e":5}', b'{"\\u006e":1}'),
        (b'{"n":5,"n":[6]}', b'{"n":1,"n":1}'),
        (b'{"stream":true,"stream":false,"a":"}"}', b'{"n":1,"a":"}"}'),
        (b'{"a":1,"stream":true}', b'{"n":1,"a":1}'),
    ],
)
def test_members_are_set_and_removed_wherever_they_stand(raw: bytes, result: bytes) -> None:
    assert JsonMembers(raw).changed({"n": b"1"}, ("stream",)) == result


def test_nothing_to_do_gives_the_same_object() -> None:
    raw = b'{"a":1}'

    assert JsonMembers(raw).changed({}, ("stream",)) is raw
