import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.resources.names import (
    fitted_name,
    is_dns1035_label,
    is_dns1123_label,
    is_dns1123_subdomain,
    is_label_key,
    is_label_value,
)


@pytest.mark.parametrize(
    ("text", "label", "letter_first", "subdomain"),
    [
        ("a", True, True, True),
        ("a-1", True, True, True),
        ("405b", True, False, True),
        ("a.b", False, False, True),
        ("a..b", False, False, False),
        ("-a", False, False, False),
        ("a-", False, False, False),
        ("A", False, False, False),
        ("a_b", False, False, False),
        ("", False, False, False),
        ("a\n", False, False, False),
        ("x" * 63, True, True, True),
        ("x" * 64, False, False, True),
        ("x" * 253, False, False, True),
        ("x" * 254, False, False, False),
    ],
)
def test_names(text: str, label: bool, letter_first: bool, subdomain: bool) -> None:
    assert is_dns1123_label(text) is label
    assert is_dns1035_label(text) is letter_first
    assert is_dns1123_subdomain(text) is subdomain


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("app", True),
        ("a.b/c_D", True),
        ("nvidia.com/gpu", True),
        ("/a", False),
        ("a/", False),
        ("a/b/c", False),
        ("A.b/c", False),
        ("", False),
        ("-a", False),
        ("x" * 64, False),
    ],
)
def test_label_keys(text: str, valid: bool) -> None:
    assert is_label_key(text) is valid


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("", True),
        ("a_b.C-1", True),
        ("0", True),
        ("09", True),
        ("Az90", True),
        ("x" * 63, True),
        ("x" * 64, False),
        ("a b", False),
        ("-", False),
    ],
)
def test_label_values(text: str, valid: bool) -> None:
    assert is_label_value(text) is valid


@given(st.from_regex(r"[a-z]([-a-z0-9]{0,90}[a-z0-9])?", fullmatch=True), st.integers(10, 63))
def test_a_fitted_name_is_a_label_of_that_length(name: str, limit: int) -> None:
    fitted = fitted_name(name, limit)
    assert len(fitted) <= limit
    assert is_dns1035_label(fitted)
    assert fitted == name or len(name) > limit


def test_long_names_that_begin_alike_stay_different() -> None:
    assert fitted_name("x" * 70 + "a") != fitted_name("x" * 70 + "b")
