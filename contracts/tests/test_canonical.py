import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.canonical import canonical_json, digest, digest_bytes

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def _reversed(value):
    """The same content, every mapping written in the opposite order."""
    if isinstance(value, dict):
        return {key: _reversed(value[key]) for key in reversed(value)}
    return [_reversed(item) for item in value] if isinstance(value, list) else value


@given(JSON)
def test_the_order_of_keys_does_not_matter(value) -> None:
    assert canonical_json(_reversed(value)) == canonical_json(value)
    assert digest(_reversed(value)) == digest(value)


@given(JSON)
def test_reading_and_writing_again_gives_the_same_bytes(value) -> None:
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [1.5, None, True]}, b'{"a":[1.5,null,true],"b":1}'),
        (0.1 + 0.2, b"0.30000000000000004"),
        (1e22, b"1e+22"),
        ("ü\n", '"ü\\n"'.encode()),
    ],
)
def test_the_form(value, text: bytes) -> None:
    assert canonical_json(value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_numbers_json_does_not_have_are_refused(value) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json(value)


def test_types_json_does_not_have_are_refused() -> None:
    with pytest.raises(TypeError):
        canonical_json({"a": object()})


def test_a_digest_is_128_bits_of_sha_256() -> None:
    assert digest_bytes(b"") == "e3b0c44298fc1c149afbf4c8996fb924"
    assert digest({}) == digest_bytes(b"{}")
    assert digest({"a": 1}) != digest({"a": 2})
